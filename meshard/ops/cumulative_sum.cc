#include "meshard/ops/cumulative_sum.h"

#include "meshard/ops/astype.h"
#include "meshard/ops/batch_rule.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/flip.h"
#include "meshard/ops/operand.h"

namespace meshard {
namespace {

void infer_cumulative(const OpCall& call, ResultTypes& results) {
  const TensorType& operand = call.operand(0);
  if (operand.dtype == DType::bool_) call.fail("takes integers or floats, not ", operand);
  check_dimension(call, "dimension", call.as<CumulativeAttributes>().dimension);
  results.push_back(operand);
}

ShardingRule cumulative_rule(const OpCall& call) {
  ShardingRuleBuilder builder;
  InlineVector<int, 6> factors =
      factors_with_whole(builder, call.operand(0).shape, call.as<CumulativeAttributes>().dimension);
  return builder.operand(one_factor_each(factors)).result(one_factor_each(factors)).build();
}

// Doubling (Hillis and Steele 1986): after the step by n, each element is the sum of the last 2n. A
// reduce_window would be quadratic on some backends.
void emit_cumulative_sum(const OpCall& call, OpEmission& out) {
  auto dimension = static_cast<std::size_t>(call.as<CumulativeAttributes>().dimension);
  const TensorType& type = call.operand(0);
  stablehlo::Value sum = out.operands[0].value;
  std::int64_t size = type.shape[static_cast<int>(dimension)];
  Dimensions none(static_cast<std::size_t>(type.rank()), 0), low = none, high = none;
  TensorType scalar{type.dtype, {}};
  stablehlo::Value zero = out.writer.scalar(type.dtype, 0);
  for (std::int64_t step = 1; step < size; step *= 2) {
    low[dimension] = step;
    high[dimension] = -step;
    stablehlo::Value moved = out.writer.temporary();
    out.writer.op("stablehlo.pad", {{moved, type}}, {{sum, type}, {zero, scalar}}, out.location)
        .i64_array("edge_padding_low", low)
        .i64_array("edge_padding_high", high)
        .i64_array("interior_padding", none)
        .done();
    bool last = 2 * step >= size;
    stablehlo::Value next = last ? out.results[0].value : out.writer.temporary();
    out.writer.elementwise("stablehlo.add", next, {sum, moved}, type, out.location);
    sum = next;
  }
  if (size <= 1)  // nothing to add: the result still needs its name
    out.op("stablehlo.reshape").done();
}

std::vector<OpSample> cumulative_samples(SampleSource& source) {
  auto along = [](std::int64_t dimension) {
    return [=](std::span<const Tensor> x) { return cumulative_sum(x[0], dimension); };
  };
  DType f32 = DType::f32, f64 = DType::f64;
  return {
      {"vector", {source.uniform(f64, {8})}, along(0)},
      {"rows", {source.uniform(f64, {4, 8})}, along(-1)},
      {"columns, uneven", {source.uniform(f64, {7, 4})}, along(0)},
      {"middle", {source.uniform(f32, {4, 5, 8})}, along(1)},
      {"one", {source.uniform(f64, {1, 4})}, along(0)},
      {"empty", {source.uniform(f32, {4, 0})}, along(1)},
      {"integers", {source.uniform(DType::i32, {4, 8}, -9, 9)}, along(1)},
      {"bools", {source.uniform(DType::bool_, {8}, 0, 1)}, along(0)},
  };
}

}  // namespace

extern constinit const OpDef cumulative_sum_op = {
    .name = "cumulative_sum",
    .operands = "x",
    .doc = "The sums of the elements up to each, along a dimension.",
    .example = "cumulative_sum(x, 1)",
    .infer = infer_cumulative,
    .sharding_rule = cumulative_rule,
    .emit = emit_cumulative_sum,
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          std::int64_t dimension = call.as<CumulativeAttributes>().dimension;
          out[0] = flip(cumulative_sum(flip(call.cotangents[0], dimension), dimension), dimension);
        },
    .batch = batch_along<CumulativeAttributes, &CumulativeAttributes::dimension>,
    .samples = cumulative_samples,
    .parse_attributes = parse_attributes<CumulativeAttributes>,
};

Tensor cumulative_sum(In x, std::int64_t dimension) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor(cumulative_sum_op, x);
  if (operand.dtype() == DType::bool_) operand = astype(operand, DType::i32);
  dimension = normalise_dimension(dimension, operand.shape().rank(), "cumulative_sum", where);
  return record(cumulative_sum_op, make_attributes(CumulativeAttributes{dimension}), {&operand},
                where);
}

}  // namespace meshard
