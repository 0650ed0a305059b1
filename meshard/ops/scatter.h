// Scatters: ops that put windows of updates where indices say. scatter_add has a pair of its own.
#pragma once
#include "meshard/ops/scatter_add.h"

namespace meshard {

// `operand` with each window of `updates` put where `indices` say, as StableHLO's scatter. A window
// that does not fit inside the operand is dropped.
// @pre `indices_are_sorted`, `unique_indices` only if they are.

/// The updates in place of the elements. Where windows meet, the plugin says which one stays; it
/// alone gets the cotangent.
Tensor scatter_set(In operand, In indices, In updates, ScatterDimensions dimensions,
                   bool indices_are_sorted = false, bool unique_indices = false);
/// The product of an element and all its updates.
Tensor scatter_multiply(In operand, In indices, In updates, ScatterDimensions dimensions,
                        bool indices_are_sorted = false, bool unique_indices = false);
/// The smallest (largest) of an element and all its updates. Equal ones share the cotangent
/// equally.
Tensor scatter_min(In operand, In indices, In updates, ScatterDimensions dimensions,
                   bool indices_are_sorted = false, bool unique_indices = false);
Tensor scatter_max(In operand, In indices, In updates, ScatterDimensions dimensions,
                   bool indices_are_sorted = false, bool unique_indices = false);

}  // namespace meshard
