// From values: reconstructs a layout from a list of its values (row-major).
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "meshard/layout/layout.h"

namespace meshard {

/// The coalesced layout L with L(i) = values[i] - values[0] for all i. Returns nullopt if no
/// layout of size values.size() has these values. Makes one pass over the list.
/// @pre values is not empty
/// @post the result has been verified against every value.
std::optional<Layout> from_values(IntView values);

}  // namespace meshard
