// Helpers for gather and the scatters: how the dimensions of indices, windows and operand
// correspond.
#pragma once
#include <vector>

#include "meshard/graph/op_def.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/stablehlo/types.h"

namespace meshard::internal {

/// A view of the dimension numbers of a gather or a scatter, under one set of names.
struct IndexDimensions {
  IndexDimensions(const GatherDimensions& of)  // NOLINT: converts
      : window_dims(of.offset_dims),
        dropped_dims(of.collapsed_slice_dims),
        operand_batch(of.operand_batching_dims),
        indices_batch(of.start_indices_batching_dims),
        index_map(of.start_index_map),
        index_vector_dim(of.index_vector_dim) {}
  IndexDimensions(const ScatterDimensions& of)  // NOLINT: converts
      : window_dims(of.update_window_dims),
        dropped_dims(of.inserted_window_dims),
        operand_batch(of.input_batching_dims),
        indices_batch(of.scatter_indices_batching_dims),
        index_map(of.scatter_dims_to_operand_dims),
        index_vector_dim(of.index_vector_dim) {}

  const Dimensions& window_dims;   ///< offset_dims; update_window_dims
  const Dimensions& dropped_dims;  ///< collapsed_slice_dims; inserted_window_dims
  const Dimensions& operand_batch;
  const Dimensions& indices_batch;
  const Dimensions& index_map;  ///< start_index_map; scatter_dims_to_operand_dims
  std::int64_t index_vector_dim;
};

/// The scatter that writes where a gather reads, and the gather that reads where a scatter writes.
inline ScatterDimensions scatter_of(const GatherDimensions& of) {
  return {.update_window_dims = of.offset_dims,
          .inserted_window_dims = of.collapsed_slice_dims,
          .input_batching_dims = of.operand_batching_dims,
          .scatter_indices_batching_dims = of.start_indices_batching_dims,
          .scatter_dims_to_operand_dims = of.start_index_map,
          .index_vector_dim = of.index_vector_dim};
}
inline GatherDimensions gather_of(const ScatterDimensions& of) {
  return {.offset_dims = of.update_window_dims,
          .collapsed_slice_dims = of.inserted_window_dims,
          .operand_batching_dims = of.input_batching_dims,
          .start_indices_batching_dims = of.scatter_indices_batching_dims,
          .start_index_map = of.scatter_dims_to_operand_dims,
          .index_vector_dim = of.index_vector_dim};
}

/// Checks all of StableHLO's rules that gather and scatter have in common. `windows_rank` is the
/// rank of the gather's result or of the scatter's updates.
/// @error through call.fail.
void check_index_dimensions(const OpCall& call, const IndexDimensions& dims,
                            const TensorType& operand, const TensorType& indices, int windows_rank);

/// The operand's dimensions inside a window, in order: neither dropped nor batching.
Dimensions window_operand_dimensions(const IndexDimensions& dims, int operand_rank);
/// The dimensions of the indices except the index vector, in order.
Dimensions batch_index_dimensions(const IndexDimensions& dims, int indices_rank);

/// The sharding rule of gather and scatter. `windows` is the shape of the gather's result or of the
/// scatter's updates.
ShardingRule indexing_rule(const IndexDimensions& dims, const Shape& operand, const Shape& indices,
                           const Shape& windows, bool scatter,
                           FactorKind of_updates = FactorKind::kReduction);

/// The indices, clamped as in gather, so that windows of these sizes fit inside.
Tensor clamp_indices(const Tensor& indices, const IndexDimensions& dims, const Shape& operand,
                     const Dimensions& window_sizes);

/// The type with which indices are lowered: integers narrower than 32 bits become i32, if the
/// compiler does not take them (Quirk::kNarrowIndices).
TensorType written_index_type(const TensorType& indices, QuirkSet quirks);
/// Writes operand 1 of a gather or scatter converted to `type`, its written_index_type.
stablehlo::Value written_indices(OpEmission& out, const TensorType& type);

// Helpers for dynamic_slice and dynamic_update_slice: the start of a box, as operands of rank 0.

/// The starts as tensors of one dtype: numbers become constants.
std::vector<Tensor> start_tensors(const OpDef& op, const std::vector<In>& starts);

/// Checks the starts that are numbers: a window of these sizes that begins there must be inside.
/// @error out of range
void check_numbers(const OpDef& op, const std::vector<In>& starts, const Shape& whole,
                   const Dimensions& window, SourceLocation where);

/// Checks that the operands from `first` on are one start per dimension of `operand`.
/// @error through call.fail.
void check_starts(const OpCall& call, const TensorType& operand, std::size_t first);

/// For batch rules: true if any of the starts, the operands from `first` on, has a batch.
bool starts_are_batched(const BatchCall& call, std::size_t first);
/// The starts that all members share, preceded by 0 for the batch dimension.
std::vector<In> starts_behind_batch(const BatchCall& call, std::size_t first);
/// The starts as one row per member: [size, rank].
Tensor batched_starts(const BatchCall& call, std::size_t first);

/// All operands, with the starts, from `first` on, in a dtype that XLA accepts
/// (Quirk::kNarrowIndices). If the work may be partitioned, the starts are also clamped so that the
/// window is inside (Quirk::kUnclampedStarts).
InlineVector<stablehlo::Typed, 4> with_written_starts(OpEmission& out, std::size_t first);

}  // namespace meshard::internal
