#include "meshard/ops/flip.h"

#include <algorithm>

#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/definition/operand.h"

namespace meshard {
namespace {

void infer_flip(const OpCall& call, ResultTypes& results) {
  const Dimensions& dimensions = call.as<FlipAttributes>().dimensions;
  const TensorType& operand = call.operand(0);
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    if (dimensions[i] < 0 || dimensions[i] >= operand.rank())
      call.fail("dimension ", dimensions[i], " is outside 0..", operand.rank() - 1, " of ",
                operand);
    if (i > 0 && dimensions[i] <= dimensions[i - 1])
      call.fail("dimensions [", join(dimensions, ", "), "] are not ascending");
  }
  results.push_back(operand);
}

ShardingRule flip_rule(const OpCall& call) {
  const Dimensions& dimensions = call.as<FlipAttributes>().dimensions;
  const Shape& shape = call.operand(0).shape;
  ShardingRuleBuilder builder;
  InlineVector<int, 6> factors;
  for (int d = 0; d < shape.rank(); ++d) {
    bool flipped = std::find(dimensions.begin(), dimensions.end(), d) != dimensions.end();
    factors.push_back(
        builder.factor(shape[d], flipped ? FactorKind::kPermutation : FactorKind::kPassThrough));
  }
  return builder.operand(one_factor_each(factors)).result(one_factor_each(factors)).build();
}

std::vector<OpSample> flip_samples(SampleSource& source) {
  auto along = [](DimensionList dimensions) {
    return [=](std::span<const Tensor> x) { return flip(x[0], dimensions); };
  };
  return {
      {"vector", {source.uniform(DType::f64, {8})}, along({})},
      {"rows", {source.uniform(DType::f64, {4, 8})}, along(0)},
      {"two of three", {source.uniform(DType::f32, {4, 8, 4})}, along({0, -1})},
      {"none", {source.uniform(DType::f32, {4, 8})}, along(Dimensions{})},
      {"bools", {source.uniform(DType::bool_, {8})}, along(0)},
  };
}

}  // namespace

extern constinit const OpDef flip_op = {
    .name = "flip",
    .operands = "x",
    .example = "flip(x, 1)",
    .infer = infer_flip,
    .sharding_rule = flip_rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          out.op("stablehlo.reverse")
              .i64_array("dimensions", call.as<FlipAttributes>().dimensions)
              .done();
        },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = flip(call.cotangents[0], call.as<FlipAttributes>().dimensions);
        },
    .batch = batch_along_all<FlipAttributes, &FlipAttributes::dimensions>,
    .samples = flip_samples,
    .parse_attributes = parse_attributes<FlipAttributes>,
    .traits = {.recomputation = Recomputation::kArithmetic},
};

Tensor flip(In x, DimensionList dimensions) {
  Tensor operand = operand_tensor(flip_op, x);
  Dimensions resolved =
      dimensions.resolve(operand.shape().rank(), "flip", effective_source(x.where));
  return record(flip_op, make_attributes(FlipAttributes{std::move(resolved)}), {&operand}, x.where);
}

}  // namespace meshard
