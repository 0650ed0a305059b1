// Helpers for dynamic_slice and dynamic_update_slice: the start of a box, as operands of rank 0.
#pragma once
#include <vector>

#include "meshard/graph/op_def.h"
#include "meshard/ops/definition/emission.h"

namespace meshard::internal {

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
