// The distinct elements of a tensor. Their number is data, but shapes are static: the caller says
// how many to find.
#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"

namespace meshard {

/// The distinct elements of a tensor and their positions.
struct Unique {
  Tensor values;           ///< [size], ascending
  Tensor indices;          ///< [size], i32: the position of each value's first occurrence, in
                           ///< row-major order
  Tensor inverse_indices;  ///< in the shape of x, i32: the index of each element's value
  Tensor counts;           ///< [size], i32: how often each value occurs; 0 for padding
  Tensor number;           ///< rank 0, i32: the number of distinct values, even if more than `size`
  MESHARD_FIELDS(values, indices, inverse_indices, counts, number)
};
/// The `size` smallest distinct elements, in ascending order. Each NaN counts as a separate value,
/// after all numbers. If there are fewer, the last one is repeated in the rest of `values`. If
/// there are more, the larger ones are left out, and their `inverse_indices` are `size` or above.
/// @error negative size; x has no elements.
Unique unique_all(In x, std::int64_t size);
/// Parts of the result: only values; values with counts; values with inverse_indices.
Tensor unique_values(In x, std::int64_t size);
struct UniqueCounts {
  Tensor values, counts;
  MESHARD_FIELDS(values, counts)
};
UniqueCounts unique_counts(In x, std::int64_t size);
struct UniqueInverse {
  Tensor values, inverse_indices;
  MESHARD_FIELDS(values, inverse_indices)
};
UniqueInverse unique_inverse(In x, std::int64_t size);

}  // namespace meshard
