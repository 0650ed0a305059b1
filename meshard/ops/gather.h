#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

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

struct GatherAttributes {
  Dimensions offset_dims, collapsed_slice_dims;
  Dimensions operand_batching_dims, start_indices_batching_dims;
  Dimensions start_index_map;
  std::int64_t index_vector_dim = 0;
  Dimensions slice_sizes;
  bool indices_are_sorted = false;
  MESHARD_FIELDS(offset_dims, collapsed_slice_dims, operand_batching_dims,
                 start_indices_batching_dims, start_index_map, index_vector_dim, slice_sizes,
                 indices_are_sorted)
};

/// Gathers slices of `operand` at `start_indices`, as StableHLO's gather does. An index out of
/// range is clamped so that its slice fits inside. For the common cases: take, take_along_axis.
/// @pre set `indices_are_sorted` only if they are.
Tensor gather(In operand, In start_indices, GatherDimensions dimensions, Dimensions slice_sizes,
              bool indices_are_sorted = false);

}  // namespace meshard
