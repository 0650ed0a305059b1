// What all cumulative ops share: each element combined with all before it.
#pragma once
#include "meshard/graph/op_def.h"
#include "meshard/ops/cumulative_sum.h"
#include "meshard/ops/emission.h"

namespace meshard {

/// Result type = operand type. @error bools; a dimension that there is not.
void infer_cumulative(const OpCall& call, ResultTypes& results);

/// All dimensions pass through but the one that is walked along.
ShardingRule cumulative_rule(const OpCall& call);

/// Writes how two tensors of one type are combined, the second nearer to the end, as `result`.
using WriteCombination = void (*)(OpEmission& out, const TensorType& type, stablehlo::Value result,
                                  stablehlo::Value a, stablehlo::Value b);

/// Writes the running combination. `identity`: a scalar that changes nothing when combined.
void emit_cumulative(const OpCall& call, OpEmission& out, const HostArray& identity,
                     WriteCombination combine);

/// `x` moved by `steps` along the direction of a cumulative op, so that each element stands where
/// the one `steps` later was; `fill` comes in.
Tensor moved_on(const Tensor& x, const CumulativeAttributes& along, std::int64_t steps,
                double fill);

/// What reaches each running value y[k] of a result whose elements follow from their predecessors:
/// the cotangents c[k] + w[k+1] * (c[k+1] + w[k+2] * ...), where w[k] = dy[k] / dy[k-1].
Tensor carried_back(const Tensor& cotangents, const Tensor& slopes,
                    const CumulativeAttributes& along);

/// Records a cumulative op.
Tensor record_cumulative(const OpDef& op, const Tensor& x, std::int64_t dimension, bool reverse,
                         SourceLocation where);

/// The result of a cumulative op with the number it begins with, in front or (reverse) at the end.
Tensor with_initial(const Tensor& running, std::int64_t dimension, bool reverse, double initial);

/// Samples of a cumulative op.
std::vector<OpSample> cumulative_samples(SampleSource& source,
                                         Tensor (*op)(In, std::int64_t, bool));

}  // namespace meshard
