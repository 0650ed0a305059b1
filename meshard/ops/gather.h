#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// How gather places slices, with StableHLO's names.
struct GatherDimensions {
  Dimensions offset_dims = {};           ///< the result's dimensions that run inside a slice
  Dimensions collapsed_slice_dims = {};  ///< the operand's dimensions of slice size 1 left out
  Dimensions operand_batching_dims =
      {};  ///< the operand's dimensions walked along with the indices'
  Dimensions start_indices_batching_dims = {};
  Dimensions start_index_map = {};    ///< the operand's dimension of each component of an index
  std::int64_t index_vector_dim = 0;  ///< of the indices: where the components of an index lie
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

/// Slices of `operand` that begin where `start_indices` say, as StableHLO's gather. An index
/// outside is moved inside, so that its slice fits. For the common cases: take, take_along_axis.
/// @pre `indices_are_sorted` only if they are.
Tensor gather(In operand, In start_indices, GatherDimensions dimensions, Dimensions slice_sizes,
              bool indices_are_sorted = false);

}  // namespace meshard
