// Conversions between indices and coordinates of a shape. Row-major: the last mode varies fastest.
#pragma once
#include <cstdint>
#include <optional>

#include "meshard/layout/int_tuple.h"

namespace meshard {

/// The coordinate of `index` in `shape`, with the nesting of the shape.
/// @pre the sizes of `shape` are at least 1
/// @post index_of(shape, coordinate_of(shape, i)) = i for i >= 0. Indices at or above the shape's
/// product continue along the first mode.
IntTuple coordinate_of(const IntTuple& shape, std::int64_t index);

/// The coordinate at which the layout shape:stride has the value `index`. This is (index / stride)
/// modulo size for each integer, as PyTorch 2.15 defines it. If `index` is a tuple, each element
/// applies to one mode.
/// @pre sizes are at least 1, the index is not negative
/// @post value_of(coordinate_of(shape, stride, L(i)), shape, stride) = L(i) if L = shape:stride is
/// orthogonal.
/// @error the nestings do not match; a stride below 1.
IntTuple coordinate_of(const IntTuple& shape, const IntTuple& stride, const IntTuple& index);

/// The index of a coordinate in `shape`. An element may be the index of a whole nested mode.
/// @error the coordinate does not match the shape's nesting.
std::int64_t index_of(const IntTuple& shape, const IntTuple& coordinate);

/// The value of the layout shape:stride at a coordinate. An element may be the index of a whole
/// nested mode; a hole counts as 0.
/// @pre sizes are at least 1
/// @error the coordinate or the stride does not match the shape's nesting.
std::int64_t value_of(const IntTuple& coordinate, const IntTuple& shape, const IntTuple& stride);

/// Converts a coordinate to the nesting of the shape `destination`. An integer is an index. A tuple
/// is converted to an index, if the destination is an integer, by `source`, the shape that the
/// tuple belongs to.
/// @error the nestings do not match; an index that is not below the destination's size; a tuple for
/// an integer destination without a source.
IntTuple convert_coordinate(const IntTuple& coordinate, const IntTuple& destination,
                            const std::optional<IntTuple>& source = std::nullopt);

}  // namespace meshard
