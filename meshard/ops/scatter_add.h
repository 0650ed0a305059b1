#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The dimension numbers of scatter, with StableHLO's names.
struct ScatterDimensions {
  Dimensions update_window_dims = {};    ///< the updates' dimensions inside a window
  Dimensions inserted_window_dims = {};  ///< the operand's dimensions of window size 1
  Dimensions input_batching_dims = {};   ///< the operand's batching dimensions, matched with the
                                         ///< indices'
  Dimensions scatter_indices_batching_dims = {};
  Dimensions scatter_dims_to_operand_dims =
      {};                             ///< the operand's dimension of each index component
  std::int64_t index_vector_dim = 0;  ///< the indices' dimension that holds the components of an
                                      ///< index
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

/// Adds each window of `updates` to `operand` at its index, as StableHLO's scatter does. Where
/// windows overlap, all of them are added. A window that does not fit inside the operand is
/// dropped.
/// @pre set `indices_are_sorted`, `unique_indices` only if they are.
Tensor scatter_add(In operand, In indices, In updates, ScatterDimensions dimensions,
                   bool indices_are_sorted = false, bool unique_indices = false);

}  // namespace meshard
