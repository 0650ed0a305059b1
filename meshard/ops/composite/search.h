// Sorting, searching and counting elements.
#pragma once
#include <cstdint>
#include <optional>

#include "meshard/graph/tensor.h"
#include "meshard/ops/dimension_list.h"

namespace meshard {

/// The index of the largest (smallest) element along a dimension. Of equal elements the first. The
/// dtype is i32, or i64 if that is too small. As in NumPy, NaN counts as both the largest and the
/// smallest: the index of the first NaN is returned. Without a dimension: the row-major index in
/// the whole tensor.
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

}  // namespace meshard
