// The attributes of the ops: what their nodes store in addition to operands. Read by the ops
// themselves, and by lowering and others that look into nodes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/base/fields.h"
#include "meshard/graph/body.h"
#include "meshard/mesh/axis_ref.h"
#include "meshard/ops/collectives.h"
#include "meshard/ops/fft.h"
#include "meshard/ops/rng_bit_generator.h"
#include "meshard/sharding/sharding.h"
#include "meshard/stablehlo/types.h"

namespace meshard {

// Elements, and their places.

/// Attributes of the op constant.
struct ConstantAttributes {
  HostArray value;
  MESHARD_FIELDS(value)
};

/// Attributes of the op iota.
struct IotaAttributes {
  DType dtype = DType::i32;
  Shape shape;
  std::int64_t dimension = 0;
  MESHARD_FIELDS(dtype, shape, dimension)
};

/// Attributes of the op bitcast_convert.
struct BitcastConvertAttributes {
  DType dtype = DType::f32;
  MESHARD_FIELDS(dtype)
};

/// Attributes of the op reshape.
struct ReshapeAttributes {
  Shape shape;
  MESHARD_FIELDS(shape)
};

/// Attributes of the op broadcast_in_dim.
struct BroadcastInDimAttributes {
  Shape shape;
  Dimensions dimensions;  ///< the result's dimension for each dimension of the operand
  MESHARD_FIELDS(shape, dimensions)
};

/// Attributes of the op permute_dims.
struct PermuteDimsAttributes {
  Dimensions permutation;  ///< dimension i of the result is dimension permutation[i] of the operand
  MESHARD_FIELDS(permutation)
};

/// Attributes of the op flip.
struct FlipAttributes {
  Dimensions dimensions;  ///< ascending, not negative
  MESHARD_FIELDS(dimensions)
};

/// Attributes of the op concat.
struct ConcatAttributes {
  std::int64_t dimension = 0;
  MESHARD_FIELDS(dimension)
};

/// Attributes of the op pad.
struct PadAttributes {
  Dimensions low, high, interior;
  MESHARD_FIELDS(low, high, interior)
};

/// Attributes of the op slice.
struct SliceAttributes {
  Dimensions start, stop, stride;
  MESHARD_FIELDS(start, stop, stride)
};

/// Attributes of the op dynamic_slice.
struct DynamicSliceAttributes {
  Dimensions sizes;
  MESHARD_FIELDS(sizes)
};

/// Attributes of the op layer_slice.
struct LayerSliceAttributes {
  std::int64_t layer = 0;
  MESHARD_FIELDS(layer)
};

/// Attributes of the op gather.
struct GatherAttributes : GatherDimensions {
  Dimensions slice_sizes;
  bool indices_are_sorted = false;
  MESHARD_FIELDS(offset_dims, collapsed_slice_dims, operand_batching_dims,
                 start_indices_batching_dims, start_index_map, index_vector_dim, slice_sizes,
                 indices_are_sorted)
};

/// Attributes of every scatter.
struct ScatterAttributes : ScatterDimensions {
  bool indices_are_sorted = false, unique_indices = false;
  MESHARD_FIELDS(update_window_dims, inserted_window_dims, input_batching_dims,
                 scatter_indices_batching_dims, scatter_dims_to_operand_dims, index_vector_dim,
                 indices_are_sorted, unique_indices)
};

/// Attributes of the op sort.
struct SortAttributes {
  std::int64_t dimension = 0;
  bool descending = false;
  std::int64_t keys = 1;  ///< number of operands compared as keys, the first one first
  MESHARD_FIELDS(dimension, descending, keys)
};

// Reductions and contractions.

/// Attributes of every reduction.
struct ReductionAttributes {
  Dimensions dimensions;  ///< ascending, not negative
  MESHARD_FIELDS(dimensions)
};

/// Attributes of every cumulative op.
struct CumulativeAttributes {
  std::int64_t dimension = 0;
  bool reverse = false;
  MESHARD_FIELDS(dimension, reverse)
};

/// Attributes of the op reduce_window.
struct ReduceWindowAttributes {
  Dimensions window, strides, low, high, base_dilation, window_dilation;
  MESHARD_FIELDS(window, strides, low, high, base_dilation, window_dilation)
};

/// Attributes of the op dot_general.
struct DotGeneralAttributes : DotDimensions {
  DType result_dtype = DType::f32;
  std::optional<Sharding> result_sharding;  ///< over a mesh with explicit axes
  MESHARD_FIELDS(lhs_contracting, rhs_contracting, lhs_batch, rhs_batch, result_dtype,
                 result_sharding)
};

/// Attributes of the op convolution.
struct ConvolutionAttributes {
  /// Order: batch, feature, spatial; for the kernel: output feature, input feature, spatial.
  Dimensions input, kernel, result;
  Dimensions strides, low, high, input_dilation, kernel_dilation;
  std::int64_t feature_groups = 1, batch_groups = 1;
  MESHARD_FIELDS(input, kernel, result, strides, low, high, input_dilation, kernel_dilation,
                 feature_groups, batch_groups)
};

/// Attributes of the op fft.
struct FftAttributes {
  FftKind kind = FftKind::kFft;
  Dimensions lengths;  ///< of the last 1 to 3 dimensions, which are transformed
  MESHARD_FIELDS(kind, lengths)
};

/// Attributes of the op rng_bit_generator.
struct RngBitGeneratorAttributes {
  RngAlgorithm algorithm = RngAlgorithm::kDefault;
  DType dtype = DType::u32;
  Shape shape = {};
  MESHARD_FIELDS(algorithm, dtype, shape)
};

// Manual axes and collectives.

/// Of full_to_shard. The sharding is always set.
struct FullToShardAttributes {
  std::optional<Sharding> sharding;
  AxisList manual;
  MESHARD_FIELDS(sharding, manual)
};

/// Of shard_to_full. The sharding is always set.
struct ShardToFullAttributes {
  std::optional<Sharding> sharding;
  Shape shape;
  MESHARD_FIELDS(sharding, shape)
};

/// Attributes of the op all_gather.
struct AllGatherAttributes {
  AxisList axes;
  std::int64_t size = 1;
  std::int64_t dimension = 0;
  bool invariant = false;
  MESHARD_FIELDS(axes, size, dimension, invariant)
};

/// Attributes of the op all_reduce.
struct AllReduceAttributes {
  AxisList axes;
  std::int64_t size = 1;
  ReduceKind kind = ReduceKind::kSum;
  MESHARD_FIELDS(axes, size, kind)
};

/// Attributes of the op all_to_all.
struct AllToAllAttributes {
  AxisList axes;
  std::int64_t size = 1;
  std::int64_t split = 0;
  std::int64_t concat = 0;
  MESHARD_FIELDS(axes, size, split, concat)
};

/// Attributes of the op collective_permute.
struct CollectivePermuteAttributes {
  AxisList axes;
  std::int64_t size = 1;
  std::vector<std::int64_t> sources, targets;
  MESHARD_FIELDS(axes, size, sources, targets)
};

/// Attributes of the op reduce_scatter.
struct ReduceScatterAttributes {
  AxisList axes;
  std::int64_t size = 1;
  std::int64_t dimension = 0;
  MESHARD_FIELDS(axes, size, dimension)
};

// Calls of this process.

/// Attributes of the op debug_print.
struct DebugPrintAttributes {
  std::string format;
  /// True: prints nothing, but the result needs the values.
  bool silent = false;
  MESHARD_FIELDS(format, silent)
};

/// Attributes of the op pure_callback.
struct PureCallbackAttributes {
  std::int64_t function = 0;  ///< its number in this process
  std::string results;        ///< the results' types, as `f32[4,8] i32[]`
  MESHARD_FIELDS(function, results)
};

// Bodies: loops, branches and checkpoint.

/// Attributes of the op scan.
struct ScanAttributes {
  /// A single body: from carries, slices and captured values to carries and slices.
  std::vector<Body> bodies;
  std::int64_t length = 0;
  std::int64_t num_carries = 0;
  /// The number of operands after the carries that are sliced along their first dimension.
  std::int64_t num_sliced = 0;
  bool reverse = false;
  /// The number of steps per iteration of the loop in the compiled program.
  std::int64_t unroll = 1;
  std::string extends;
  MESHARD_FIELDS(bodies, length, num_carries, num_sliced, reverse, unroll, extends)
};

/// Attributes of the op while_loop.
struct WhileAttributes {
  /// Two: from carries and captured values to whether to continue, and to the next carries.
  std::vector<Body> bodies;
  std::int64_t num_carries = 0;
  MESHARD_FIELDS(bodies, num_carries)
};

/// Attributes of the op switch.
struct SwitchAttributes {
  /// One per case: from the arguments and captured values to the results.
  std::vector<Body> bodies;
  std::int64_t num_arguments = 0;
  std::string extends;
  MESHARD_FIELDS(bodies, num_arguments, extends)
};

/// Attributes of the op checkpoint.
struct CheckpointAttributes {
  /// A single body: from the arguments and captured values to the results.
  std::vector<Body> bodies;
  /// The ResidualPolicy, as text.
  std::string policy;
  std::string extends;
  MESHARD_FIELDS(bodies, policy, extends)
};

}  // namespace meshard
