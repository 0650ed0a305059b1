// Searching and counting elements.
#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"
#include "meshard/ops/dimension_list.h"

namespace meshard {

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
