// Helpers for cumulative ops, which combine each element with all before it.
#pragma once
#include "meshard/graph/op_def.h"
#include "meshard/ops/cumulative_sum.h"
#include "meshard/ops/definition/emission.h"

namespace meshard::internal {

/// Result type = operand type. @error bools; the dimension is out of range.
void infer_cumulative(const OpCall& call, ResultTypes& results);

/// All dimensions pass through except the one along which elements are combined.
ShardingRule cumulative_rule(const OpCall& call);

/// Writes the combination of two tensors of one type, the second closer to the end, as `result`.
using WriteCombination = void (*)(OpEmission& out, const TensorType& type, stablehlo::Value result,
                                  stablehlo::Value a, stablehlo::Value b);

/// Writes the running combination. `identity` is the identity element of the combination, a scalar.
void emit_cumulative(const OpCall& call, OpEmission& out, const HostArray& identity,
                     WriteCombination combine);

/// `x` shifted by `steps` along the direction of a cumulative op: each element moves `steps` later.
/// `fill` is shifted in.
Tensor moved_on(const Tensor& x, const CumulativeAttributes& along, std::int64_t steps,
                double fill);

/// The total cotangents of running values y[k], each computed from its predecessor: c[k] + w[k+1] *
/// (c[k+1] + w[k+2] * ...), where w[k] = dy[k] / dy[k-1].
Tensor carried_back(const Tensor& cotangents, const Tensor& slopes,
                    const CumulativeAttributes& along);

/// Records a cumulative op.
Tensor record_cumulative(const OpDef& op, const Tensor& x, std::int64_t dimension, bool reverse,
                         SourceLocation where);

/// The result of a cumulative op with its initial value added, at the front or (reverse) at the
/// end.
Tensor with_initial(const Tensor& running, std::int64_t dimension, bool reverse, double initial);

/// Samples of a cumulative op.
std::vector<OpSample> cumulative_samples(SampleSource& source,
                                         Tensor (*op)(In, std::int64_t, bool));

}  // namespace meshard::internal
