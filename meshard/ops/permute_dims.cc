#include "meshard/ops/permute_dims.h"

#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/definition/operand.h"

namespace meshard {
namespace {

void infer_permute_dims(const OpCall& call, ResultTypes& results) {
  const Dimensions& permutation = call.as<PermuteDimsAttributes>().permutation;
  const TensorType& operand = call.operand(0);
  check_one_each(call, "the permutation", permutation.size(), operand);
  Dimensions sizes, seen(permutation.size(), 0);
  for (std::int64_t d : permutation) {
    if (d < 0 || d >= operand.rank() || seen[static_cast<std::size_t>(d)]++)
      call.fail("[", join(permutation, ", "), "] is not a permutation of 0..", operand.rank() - 1,
                ", the dimensions of ", operand);
    sizes.push_back(operand.shape[d]);
  }
  results.push_back({operand.dtype, Shape(std::move(sizes))});
}

ShardingRule permute_dims_rule(const OpCall& call) {
  const Dimensions& permutation = call.as<PermuteDimsAttributes>().permutation;
  ShardingRuleBuilder builder;
  InlineVector<int, 6> in, out;
  for (std::int64_t size : call.operand(0).shape) in.push_back(builder.factor(size));
  for (std::int64_t d : permutation) out.push_back(in[static_cast<std::size_t>(d)]);
  return builder.operand(one_factor_each(in)).result(one_factor_each(out)).build();
}

void permute_dims_vjp(const VjpCall& call, std::span<Tensor> out) {
  const Dimensions& permutation = call.as<PermuteDimsAttributes>().permutation;
  Dimensions inverse(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i)
    inverse[static_cast<std::size_t>(permutation[i])] = static_cast<std::int64_t>(i);
  out[0] = permute_dims(call.cotangents[0], std::move(inverse));
}

void batch_permute_dims(const BatchCall& call, std::span<Tensor> results) {
  PermuteDimsAttributes attributes{with_batch(0, call.as<PermuteDimsAttributes>().permutation)};
  record_batched(call, make_attributes(std::move(attributes)), call.operands, results);
}

std::vector<OpSample> permute_dims_samples(SampleSource& source) {
  auto by = [](Dimensions permutation) {
    return [=](std::span<const Tensor> x) { return permute_dims(x[0], permutation); };
  };
  return {
      {"matrix", {source.uniform(DType::f64, {4, 8})}, by({1, 0})},
      {"cycle", {source.uniform(DType::f64, {4, 8, 12})}, by({2, 0, 1})},
      {"reversed",
       {source.uniform(DType::f32, {4, 8, 12})},
       [](std::span<const Tensor> x) { return permute_dims(x[0]); }},
      {"vector", {source.uniform(DType::f32, {8})}, by({0})},
      {"bools", {source.uniform(DType::bool_, {4, 8})}, by({-1, 0})},
      {"rank 4", {source.uniform(DType::f32, {2, 4, 1, 8})}, by({3, 1, 0, 2})},
  };
}

}  // namespace

extern constinit const OpDef permute_dims_op = {
    .name = "permute_dims",
    .operands = "x",
    .example = "permute_dims(x, {1, 0})",
    .infer = infer_permute_dims,
    .sharding_rule = permute_dims_rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          out.op("stablehlo.transpose")
              .i64_array("permutation", call.as<PermuteDimsAttributes>().permutation)
              .done();
        },
    .vjp = permute_dims_vjp,
    .batch = batch_permute_dims,
    .samples = permute_dims_samples,
    .parse_attributes = parse_attributes<PermuteDimsAttributes>,
    .traits = {.recomputation = Recomputation::kArithmetic},
};

Tensor permute_dims(In x, Dimensions permutation) {
  Tensor operand = operand_tensor(permute_dims_op, x);
  for (std::int64_t& d : permutation)
    d = normalize_dimension(d, operand.shape().rank(), "permute_dims", effective_source(x.where));
  return record(permute_dims_op, make_attributes(PermuteDimsAttributes{std::move(permutation)}),
                {&operand}, x.where);
}

Tensor permute_dims(In x) {
  Tensor operand = operand_tensor(permute_dims_op, x);
  Dimensions reversed;
  for (int d = operand.shape().rank(); d-- > 0;) reversed.push_back(d);
  return permute_dims(In(operand, x.where), std::move(reversed));
}

}  // namespace meshard
