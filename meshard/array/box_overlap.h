// What two boxes of one array have in common.
#pragma once
#include <optional>

#include "meshard/base/box.h"

namespace meshard {

/// The elements that are in both boxes; nothing if there are none.
/// @pre both have the same number of dimensions
std::optional<Box> overlap(const Box& a, const Box& b);

/// The box `inner` in an array that holds only `outer`: its indices begin where `outer` does.
/// @pre both have the same number of dimensions
Box relative_to(const Box& outer, Box inner);

}  // namespace meshard
