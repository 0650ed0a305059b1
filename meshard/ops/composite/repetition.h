// Repeating, rolling and broadcasting elements, and coordinate grids.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "meshard/graph/tensor.h"
#include "meshard/ops/dimension_list.h"

namespace meshard {

/// Repeats each slice along a dimension `repeats` times in a row. Without a dimension it repeats
/// the elements in row-major order. The second form has a separate number for each slice.
/// @error a negative number; the number of repeats differs from the number of slices.
Tensor repeat(In x, std::int64_t repeats, std::optional<std::int64_t> dimension = std::nullopt);
Tensor repeat(In x, const Dimensions& repeats,
              std::optional<std::int64_t> dimension = std::nullopt);

/// Repeats the whole of x `repetitions[d]` times along dimension d. The shorter of the two lists,
/// sizes and repetitions, is extended with leading ones.
/// @error a negative number.
Tensor tile(In x, Dimensions repetitions);

/// Shifts element i to i + shift along a dimension, wrapping around at the end. Without a dimension
/// it shifts the elements in row-major order and keeps the shape of x. The second form has a shift
/// for each of the dimensions, one of which may be named repeatedly.
/// @error lists of different lengths.
Tensor roll(In x, std::int64_t shift, std::optional<std::int64_t> dimension = std::nullopt);
Tensor roll(In x, Dimensions shifts, Dimensions dimensions);

/// The order of meshgrid's dimensions.
enum class GridOrder {
  kXy,  ///< the first two vectors run along dimensions 1 and 0, as in an image
  kIj,  ///< vector i runs along dimension i
};
/// The coordinates of a grid: tensor i has the elements of vector i along one dimension, and is
/// constant along all others.
/// @error an argument is not a vector, or they have different dtypes.
std::vector<Tensor> meshgrid(const std::vector<Tensor>& vectors, GridOrder order = GridOrder::kXy,
                             SourceLocation where = SourceLocation::current());

/// The shape to which all broadcast, aligned at the last dimension. @error invalid argument naming
/// two shapes that do not match.
Shape broadcast_shapes(const std::vector<Shape>& shapes,
                       SourceLocation where = SourceLocation::current());
/// Broadcasts each tensor to that shape.
std::vector<Tensor> broadcast_arrays(const std::vector<Tensor>& tensors,
                                     SourceLocation where = SourceLocation::current());

}  // namespace meshard
