// What dynamic_slice and dynamic_update_slice share: the start of a box, as operands of rank 0.
#pragma once
#include <vector>

#include "meshard/graph/op_def.h"
#include "meshard/ops/emission.h"

namespace meshard {

/// The starts as tensors of one dtype: numbers become constants.
std::vector<Tensor> start_tensors(const OpDef& op, const std::vector<In>& starts);

/// Checks that the operands from `first` on are a start in each dimension of `operand`.
/// @error through call.fail.
void check_starts(const OpCall& call, const TensorType& operand, std::size_t first);

/// For batch rules: true if the starts, the operands from `first` on, differ between the members.
bool starts_are_batched(const BatchCall& call, std::size_t first);
/// The starts that all members share, with 0 for the batch before them.
std::vector<In> starts_behind_batch(const BatchCall& call, std::size_t first);
/// One row of starts for each member: [size, rank].
Tensor batched_starts(const BatchCall& call, std::size_t first);

/// All operands; the starts, from `first` on, in a dtype that XLA takes (written_index_type), and
/// where the work may be split so that the window is inside: the partitioner leaves out an update
/// before the beginning, which should be moved there.
InlineVector<stablehlo::Typed, 4> with_written_starts(OpEmission& out, std::size_t first);

}  // namespace meshard
