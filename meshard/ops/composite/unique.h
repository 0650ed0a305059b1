// The distinct elements of a tensor. How many there are is data, and shapes are not: the caller
// says how many to look for.
#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"

namespace meshard {

/// The distinct elements of a tensor and where they stand.
struct Unique {
  Tensor values;           ///< [size], ascending
  Tensor indices;          ///< [size], i32: where each stands first, in row-major order
  Tensor inverse_indices;  ///< of the shape of x, i32: the number of each element's value
  Tensor counts;           ///< [size], i32: how often each stands; 0: there is no such value
  Tensor number;           ///< rank 0, i32: how many distinct values there are, however many fit
  MESHARD_FIELDS(values, indices, inverse_indices, counts, number)
};
/// The `size` smallest distinct elements, in ascending order. Every NaN is a value of its own,
/// behind all numbers. Are there fewer, then the last one fills the rest of `values`; are there
/// more, then the larger ones are left out, and `inverse_indices` of them lie beyond size - 1.
/// @error negative size; x has no element.
Unique unique_all(In x, std::int64_t size);
/// Its parts: values alone; values with counts; values with inverse_indices.
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
