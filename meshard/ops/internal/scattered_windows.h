// Helpers for the scatters: inference, sharding and batch rules, lowering.
#pragma once
#include "meshard/graph/op_def.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/scatter_add.h"

namespace meshard::internal {

/// Infers a scatter: one result, of the operand's type.
/// @error dtypes, ranks or sizes that do not match.
void infer_scatter(const OpCall& call, ResultTypes& results);

/// The sharding rule of a scatter. `of_updates` is the kind of the factors that the updates and the
/// indices share.
ShardingRule scatter_rule(const OpCall& call, FactorKind of_updates);

/// Writes a scatter that combines an element and its update by the binary op `mnemonic`; if that is
/// empty, the update replaces the element.
void emit_scatter(const OpCall& call, OpEmission& out, std::string_view mnemonic);

/// The batch rule of a scatter.
void batch_scatter(const BatchCall& call, std::span<Tensor> results);

/// Records a scatter.
Tensor record_scatter(const OpDef& op, const In& operand, const In& indices, const In& updates,
                      ScatterDimensions dimensions, bool indices_are_sorted, bool unique_indices);

/// Gathers the elements of `x`, of the operand's shape, at which the updates of a scatter are
/// written. The result has the updates' shape; it is 0 where a window does not fit inside.
Tensor scattered_windows(const Tensor& x, const VjpCall& call);

}  // namespace meshard::internal
