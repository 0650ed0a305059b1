// What two boxes of one array have in common, and where their elements are.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/base/box.h"

namespace meshard {

/// The elements that are in both boxes; nothing if there are none.
/// @pre both have the same number of dimensions
std::optional<Box> overlap(const Box& a, const Box& b);

/// The box `inner` in an array that holds only `outer`: its indices begin where `outer` does.
/// @pre both have the same number of dimensions
Box relative_to(const Box& outer, Box inner);

/// The row-major numbers, in an array of these sizes, of the elements in a box, in row-major order.
/// @pre as many sizes as the box has dimensions, or more, which are ignored
std::vector<std::int64_t> numbers_in(const Box& box, std::span<const std::int64_t> sizes);

/// The number of the first element of a box of a row-major array, if the box is contiguous there.
/// @pre the box is inside
std::optional<std::int64_t> contiguous_at(const Box& box, const Shape& shape);

}  // namespace meshard
