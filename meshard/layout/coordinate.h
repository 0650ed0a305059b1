// Between indices and coordinates of a shape, row-major: the last mode is the fastest.
#pragma once
#include <cstdint>

#include "meshard/layout/int_tuple.h"

namespace meshard {

/// The coordinate of `index` in `shape`, nested as the shape is.
/// @pre the sizes of `shape` are at least 1
/// @post index_of(shape, coordinate_of(shape, i)) = i for i >= 0. Indices beyond the shape's
/// product run on along the first mode.
IntTuple coordinate_of(const IntTuple& shape, std::int64_t index);

/// The index of a coordinate in `shape`. An element may be the index of a whole nested mode.
/// @error the coordinate does not fit the shape's nesting.
std::int64_t index_of(const IntTuple& shape, const IntTuple& coordinate);

}  // namespace meshard
