// Finding and counting elements.
#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"
#include "meshard/ops/dimension_list.h"

namespace meshard {

/// How many elements are not zero (or true) along dimensions, in i32.
Tensor count_nonzero(In x, DimensionList dimensions = {}, bool keepdims = false);

/// On which side of equal elements searchsorted goes.
enum class SearchSide {
  kLeft,   ///< before the first: sorted[i - 1] < x <= sorted[i]
  kRight,  ///< behind the last: sorted[i - 1] <= x < sorted[i]
};
/// Where each element of `x` belongs in the ascending vector `sorted`: the index, in i32, that
/// keeps the order. NaN belongs behind all numbers. By halving: a gather for each binary digit of
/// the size of `sorted`. An unsorted vector is sorted by `sorter` = argsort(unsorted).
/// @pre sorted (or sorted by `sorter`) in ascending order
/// @error `sorted` is not a vector; a sorter of another shape.
Tensor searchsorted(In sorted, In x, SearchSide side = SearchSide::kLeft, Tensor sorter = {});

/// True where an element of `x` equals an element of `elements` (of any shape); false there if
/// `invert`. NaN equals nothing. Every pair is compared: made for few elements.
Tensor isin(In x, In elements, bool invert = false);

}  // namespace meshard
