// From values: the layout behind a list of values (row-major).
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "meshard/layout/layout.h"

namespace meshard {

/// The coalesced layout L with L(i) = values[i] - values[0] for all i, or none if there is no such
/// layout with as many indices as there are values. One pass over the list.
/// @pre values is not empty
/// @post the result is verified against every value.
std::optional<Layout> from_values(IntView values);

}  // namespace meshard
