// Adding, removing and reordering dimensions; stacking, splitting and repeating.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "meshard/graph/tensor.h"
#include "meshard/ops/dimension_list.h"

namespace meshard {

/// Removes the named dimensions, which must have size 1; by default every dimension of size 1.
/// @error a named dimension has another size.
Tensor squeeze(In x, DimensionList dimensions);
Tensor squeeze(In x);

/// Inserts a new dimension of size 1 at position `dimension` of the result.
Tensor expand_dims(In x, std::int64_t dimension = 0);

/// All elements in row-major order, as one dimension.
Tensor flatten(In x);

/// Exchanges two dimensions.
Tensor swapaxes(In x, std::int64_t a, std::int64_t b);

/// Moves dimension source[i] to position destination[i]; the others keep their order.
/// @error lists of different lengths, a dimension named twice.
Tensor moveaxis(In x, Dimensions source, Dimensions destination);
Tensor moveaxis(In x, std::int64_t source, std::int64_t destination);

/// Stacks tensors of one shape along a new dimension of the result: `stack({a, b}, 0)`.
Tensor stack(const std::vector<Tensor>& tensors, std::int64_t dimension = 0,
             SourceLocation where = SourceLocation::current());

/// The slices of `x` along a dimension, which is removed from each: the inverse of stack.
std::vector<Tensor> unstack(In x, std::int64_t dimension = 0);

/// Splits `x` into `count` equal parts along a dimension.
/// @error the size is not a multiple of count.
std::vector<Tensor> split(In x, std::int64_t count, std::int64_t dimension = 0);

/// Splits `x` into parts of these sizes along a dimension: `split_sizes(x, {2, 3, 3}, 1)`.
/// @error the sizes do not add up to that of the dimension.
std::vector<Tensor> split_sizes(In x, Dimensions sizes, std::int64_t dimension = 0);

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
