// Sorting, searching and counting elements. The number of distinct elements is data, but shapes are
// static: the caller says how many to find.
#pragma once
#include <cstdint>
#include <optional>

#include "meshard/graph/tensor.h"
#include "meshard/ops/dimension_list.h"

namespace meshard {

/// The index of the largest (smallest) element along a dimension. Of equal elements, it is the
/// first one's. The dtype is i32, or i64 if that is too small. As in NumPy, NaN counts as both the
/// largest and the smallest: the index of the first NaN is returned. Without a dimension: the
/// row-major index in the whole tensor.
/// @error there are no elements.
Tensor argmax(In x, std::optional<std::int64_t> dimension = std::nullopt, bool keepdims = false);
Tensor argmin(In x, std::optional<std::int64_t> dimension = std::nullopt, bool keepdims = false);

/// The indices that sort `x` along a dimension, in i32 (i64 if that is too small). Equal elements
/// keep their order.
Tensor argsort(In x, std::int64_t dimension = -1, bool descending = false);

/// The k largest elements along a dimension, in descending order, and their indices. Of equal
/// elements the one with the lower index comes first.
struct TopK {
  Tensor values, indices;
  MESHARD_FIELDS(values, indices)
};
/// @error k is not in 0..size of the dimension.
TopK top_k(In x, std::int64_t k, std::int64_t dimension = -1);

/// The number of nonzero (or true) elements along dimensions, in i32.
Tensor count_nonzero(In x, DimensionList dimensions = {}, bool keepdims = false);

/// The side of equal elements on which searchsorted inserts.
enum class SearchSide {
  kLeft,   ///< before the first: sorted[i - 1] < x <= sorted[i]
  kRight,  ///< after the last: sorted[i - 1] <= x < sorted[i]
};
/// The insertion index, in i32, of each element of `x` into the ascending vector `sorted`. NaN goes
/// after all numbers. It uses a binary search: one gather per binary digit of the size of `sorted`.
/// For an unsorted vector pass `sorter` = argsort(unsorted).
/// @pre sorted (or sorted by `sorter`) in ascending order
/// @error `sorted` is not a vector; a sorter of another shape.
Tensor searchsorted(In sorted, In x, SearchSide side = SearchSide::kLeft, Tensor sorter = {});

/// True where an element of `x` equals any element of `elements` (of any shape); negated if
/// `invert`. NaN equals nothing. Every pair is compared: intended for few elements.
Tensor isin(In x, In elements, bool invert = false);

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
