// Divides a sequence of layers into stages of equal cost.
#pragma once
#include <span>
#include <vector>

#include "meshard/base/source_location.h"

namespace meshard {

/// Divides layers into `stages` contiguous ranges of at least one layer each, such that the largest
/// cost of a range is as small as possible; and among those, the sum of the squares of the ranges'
/// costs, so that the others are also alike. Dynamic programming over the ends of the ranges:
/// O(stages * layers^2).
///
/// `balanced_layers({3, 1, 1, 1, 4, 2}, 3)` is `3,2,1` for costs 5, 5, 2
/// @return the number of layers of each stage
/// @error invalid argument, thrown: fewer than one stage, or more than layers; a cost that is
/// negative or not finite
std::vector<int> balanced_layers(std::span<const double> costs, int stages,
                                 SourceLocation where = SourceLocation::current());

}  // namespace meshard
