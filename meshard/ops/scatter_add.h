#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/stablehlo/dimension_numbers.h"

namespace meshard {

/// Attributes of every scatter.
struct ScatterAttributes : ScatterDimensions {
  bool indices_are_sorted = false, unique_indices = false;
  MESHARD_FIELDS(update_window_dims, inserted_window_dims, input_batching_dims,
                 scatter_indices_batching_dims, scatter_dims_to_operand_dims, index_vector_dim,
                 indices_are_sorted, unique_indices)
};

/// Adds each window of `updates` to `operand` at its index, as StableHLO's scatter does. Where
/// windows overlap, all of them are added. A window that does not fit inside the operand is
/// dropped.
/// @pre set `indices_are_sorted`, `unique_indices` only if they are.
Tensor scatter_add(In operand, In indices, In updates, ScatterDimensions dimensions,
                   bool indices_are_sorted = false, bool unique_indices = false);

}  // namespace meshard
