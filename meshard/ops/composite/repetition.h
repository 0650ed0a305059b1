// Elements again, moved round, and in grids.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "meshard/graph/tensor.h"
#include "meshard/ops/dimension_list.h"

namespace meshard {

/// Each slice along a dimension `repeats` times, one after the other; of the elements in row-major
/// order if no dimension is given. The second form has a number of its own for each slice.
/// @error a negative number; not one number for each slice.
Tensor repeat(In x, std::int64_t repeats, std::optional<std::int64_t> dimension = std::nullopt);
Tensor repeat(In x, const Dimensions& repeats,
              std::optional<std::int64_t> dimension = std::nullopt);

/// The whole of x `repetitions[d]` times along dimension d. The shorter of the two lists, sizes and
/// repetitions, gets ones in front.
/// @error a negative number.
Tensor tile(In x, Dimensions repetitions);

/// Element i becomes element i + shift along a dimension; what leaves at the end comes back at the
/// front. Without a dimension: of the elements in row-major order, in the shape of x. The second
/// form has a shift for each of the dimensions, one of which may be named again.
/// @error lists of different lengths.
Tensor roll(In x, std::int64_t shift, std::optional<std::int64_t> dimension = std::nullopt);
Tensor roll(In x, Dimensions shifts, Dimensions dimensions);

/// How meshgrid orders dimensions.
enum class GridOrder {
  kXy,  ///< the first two vectors run along dimensions 1 and 0, as in a picture
  kIj,  ///< vector i runs along dimension i
};
/// The coordinates of a grid: tensor i has the elements of vector i along one dimension, and is the
/// same along all others.
/// @error one is not a vector, or they have different dtypes.
std::vector<Tensor> meshgrid(const std::vector<Tensor>& vectors, GridOrder order = GridOrder::kXy,
                             SourceLocation where = SourceLocation::current());

/// The shape that all broadcast to, aligned at the last dimension. @error invalid argument naming
/// two that do not go together.
Shape broadcast_shapes(const std::vector<Shape>& shapes,
                       SourceLocation where = SourceLocation::current());
/// Each stretched to that shape.
std::vector<Tensor> broadcast_arrays(const std::vector<Tensor>& tensors,
                                     SourceLocation where = SourceLocation::current());

}  // namespace meshard
