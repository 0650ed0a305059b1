#include "meshard/ops/cumulative_sum.h"

#include "meshard/ops/astype.h"
#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/internal/running_combination.h"
#include "meshard/ops/internal/sum_dtype.h"

namespace meshard {
using namespace internal;

extern constinit const OpDef cumulative_sum_op = {
    .name = "cumulative_sum",
    .operands = "x",
    .example = "cumulative_sum(x, 1)",
    .infer = infer_cumulative,
    .sharding_rule = cumulative_rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          emit_cumulative(
              call, out, HostArray::zeros({call.operand(0).dtype, {}}),
              [](OpEmission& to, const TensorType& type, stablehlo::Value result,
                 stablehlo::Value a, stablehlo::Value b) {
                to.writer.elementwise("stablehlo.add", result, {b, a}, type, to.location);
              });
        },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const auto& [dimension, reverse] = call.as<CumulativeAttributes>();
          out[0] = cumulative_sum(call.cotangents[0], dimension, !reverse);
        },
    .batch = batch_along<CumulativeAttributes, &CumulativeAttributes::dimension>,
    .samples =
        [](SampleSource& source) {
          std::vector<OpSample> samples = cumulative_samples(source, cumulative_sum);
          samples.push_back({"bools",
                             {source.uniform(DType::bool_, {8}, 0, 1)},
                             [](std::span<const Tensor> x) { return cumulative_sum(x[0]); }});
          return samples;
        },
    .parse_attributes = parse_attributes<CumulativeAttributes>,
};

Tensor cumulative_sum(In x, std::int64_t dimension, bool reverse) {
  SourceScope line(x.where);
  Tensor operand = operand_tensor(cumulative_sum_op, x);
  operand = astype(operand, sum_dtype(operand.dtype()));
  return record_cumulative(cumulative_sum_op, operand, dimension, reverse, x.where);
}

Tensor cumulative_sum(In x, std::int64_t dimension, bool reverse, bool include_initial) {
  SourceScope line(x.where);
  Tensor sums = cumulative_sum(x, dimension, reverse);
  return include_initial ? with_initial(sums, dimension, reverse, 0) : sums;
}

}  // namespace meshard
