// Serialization of named values.
#pragma once
#include <string_view>

#include "meshard/base/result.h"
#include "meshard/pjrt/named_value.h"
#include "meshard/pjrt/wire.h"

namespace meshard {

/// A message with the name and a value, in a different field for each type.
pjrt::WireWriter write_named_value(const pjrt::NamedValue& named);

/// Reads what write_named_value() wrote.
/// @error data loss
Result<pjrt::NamedValue> read_named_value(std::string_view bytes);

}  // namespace meshard
