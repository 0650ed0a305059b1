#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// How scatter places windows, with StableHLO's names.
struct ScatterDimensions {
  Dimensions update_window_dims = {};    ///< the updates' dimensions that run inside a window
  Dimensions inserted_window_dims = {};  ///< the operand's dimensions of window size 1
  Dimensions input_batching_dims = {};  ///< the operand's dimensions walked along with the indices'
  Dimensions scatter_indices_batching_dims = {};
  Dimensions scatter_dims_to_operand_dims =
      {};                             ///< the operand's dimension of each index component
  std::int64_t index_vector_dim = 0;  ///< of the indices: where the components of an index lie
};

/// Attributes of every scatter.
struct ScatterAttributes {
  Dimensions update_window_dims, inserted_window_dims;
  Dimensions input_batching_dims, scatter_indices_batching_dims;
  Dimensions scatter_dims_to_operand_dims;
  std::int64_t index_vector_dim = 0;
  bool indices_are_sorted = false, unique_indices = false;
  MESHARD_FIELDS(update_window_dims, inserted_window_dims, input_batching_dims,
                 scatter_indices_batching_dims, scatter_dims_to_operand_dims, index_vector_dim,
                 indices_are_sorted, unique_indices)
};

using ScatterAddAttributes = ScatterAttributes;

/// `operand` with each window of `updates` added where `indices` say, as StableHLO's scatter;
/// windows may meet, and are then all added. A window that does not fit inside the operand is
/// dropped.
/// @pre `indices_are_sorted`, `unique_indices` only if they are.
Tensor scatter_add(In operand, In indices, In updates, ScatterDimensions dimensions,
                   bool indices_are_sorted = false, bool unique_indices = false);

}  // namespace meshard
