// What all scatters share: where their windows lie.
#pragma once
#include "meshard/graph/op_def.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/scatter_add.h"

namespace meshard {

/// Inference of a scatter: one result, of the operand's type.
/// @error dtypes, ranks and sizes that do not go together.
void infer_scatter(const OpCall& call, ResultTypes& results);

/// The sharding rule of a scatter. `of_updates`: what becomes of the dimensions that the updates
/// and the indices share.
ShardingRule scatter_rule(const OpCall& call, FactorKind of_updates);

/// Writes a scatter that combines an element and its update by the binary op `mnemonic`; empty: the
/// update takes the element's place.
void emit_scatter(const OpCall& call, OpEmission& out, std::string_view mnemonic);

/// The batch rule of a scatter.
void batch_scatter(const BatchCall& call, std::span<Tensor> results);

/// Records a scatter.
Tensor record_scatter(const OpDef& op, const In& operand, const In& indices, const In& updates,
                      ScatterDimensions dimensions, bool indices_are_sorted, bool unique_indices);

/// The elements of `x`, of the operand's shape, that each update of a scatter falls on: of the
/// updates' shape, 0 where a window does not fit.
Tensor scattered_windows(const Tensor& x, const VjpCall& call);

}  // namespace meshard
