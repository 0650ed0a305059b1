// Which dimensions of its operands and result an op works on: of dot_general, gather and scatter.
#pragma once
#include <cstdint>

#include "meshard/array/shape.h"

namespace meshard {

/// The contracting and batch dimensions of dot_general: entry i of one list pairs with entry i of
/// the other. Negative numbers count from the last.
struct DotDimensions {
  Dimensions lhs_contracting = {}, rhs_contracting = {};
  Dimensions lhs_batch = {}, rhs_batch = {};
};

/// The dimension numbers of gather, with StableHLO's names.
struct GatherDimensions {
  Dimensions offset_dims = {};           ///< the result's dimensions inside a slice
  Dimensions collapsed_slice_dims = {};  ///< the operand's dimensions of slice size 1 that are
                                         ///< removed
  Dimensions operand_batching_dims =
      {};  ///< the operand's batching dimensions, matched with the indices'
  Dimensions start_indices_batching_dims = {};
  Dimensions start_index_map = {};    ///< the operand's dimension for each component of an index
  std::int64_t index_vector_dim = 0;  ///< the indices' dimension that holds the components of an
                                      ///< index
};

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

}  // namespace meshard
