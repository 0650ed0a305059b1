// Named values as bytes.
#pragma once
#include <string_view>

#include "meshard/base/result.h"
#include "meshard/pjrt/named_value.h"
#include "meshard/pjrt/wire.h"

namespace meshard {

/// A message of a name and a value of its own field for each type.
pjrt::WireWriter write_named_value(const pjrt::NamedValue& named);

/// Reads what write_named_value() wrote.
/// @error data loss
Result<pjrt::NamedValue> read_named_value(std::string_view bytes);

}  // namespace meshard
