// Scatters: ops that write windows of updates at given indices.
#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/stablehlo/types.h"

namespace meshard {

/// Adds each window of `updates` to `operand` at its index, as StableHLO's scatter does. Where
/// windows overlap, all of them are added. A window that does not fit inside the operand is
/// dropped.
/// @pre set `indices_are_sorted`, `unique_indices` only if they are.
Tensor scatter_add(In operand, In indices, In updates, ScatterDimensions dimensions,
                   bool indices_are_sorted = false, bool unique_indices = false);

// Each combines `operand` with every window of `updates` at its index, as StableHLO's scatter does.
// A window that does not fit inside the operand is dropped.
// @pre set `indices_are_sorted`, `unique_indices` only if they are.

/// The elements replaced by the updates. Where windows overlap, it depends on the plugin which
/// update remains; only that one receives the cotangent.
Tensor scatter_set(In operand, In indices, In updates, ScatterDimensions dimensions,
                   bool indices_are_sorted = false, bool unique_indices = false);
/// The product of each element and all its updates.
Tensor scatter_multiply(In operand, In indices, In updates, ScatterDimensions dimensions,
                        bool indices_are_sorted = false, bool unique_indices = false);
/// The smallest (largest) of each element and all its updates. Equal ones share the cotangent
/// equally.
Tensor scatter_min(In operand, In indices, In updates, ScatterDimensions dimensions,
                   bool indices_are_sorted = false, bool unique_indices = false);
Tensor scatter_max(In operand, In indices, In updates, ScatterDimensions dimensions,
                   bool indices_are_sorted = false, bool unique_indices = false);

}  // namespace meshard
