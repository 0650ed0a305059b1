#include "meshard/ops/where.h"

#include <array>

#include "meshard/graph/explicit_sharding.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/emission.h"

namespace meshard {
namespace {

void infer_where(const OpCall& call, ResultTypes& results) {
  const TensorType &condition = call.operand(0), &a = call.operand(1), &b = call.operand(2);
  if (condition.dtype != DType::bool_)
    call.fail("the condition must be of bools, not ", condition.dtype,
              ": compare first, as in not_equal(x, 0)");
  if (a != b) call.fail("types to choose from differ: ", a, " and ", b);
  if (condition.shape != a.shape) call.fail("shapes differ: condition ", condition, ", values ", a);
  results.push_back(a);
}

void where_vjp(const VjpCall& call, std::span<Tensor> out) {
  const Tensor& condition = call.operands[0];
  if (call.needs(1)) out[1] = where(condition, call.cotangents[0], 0);
  if (call.needs(2)) out[2] = where(condition, 0, call.cotangents[0]);
}

std::vector<OpSample> where_samples(SampleSource& source) {
  auto call = [](std::span<const Tensor> x) { return where(x[0], x[1], x[2]); };
  auto of = [&](DType dtype, Shape condition, Shape a, Shape b) {
    return std::vector<HostArray>{source.uniform(DType::bool_, std::move(condition), 0, 1),
                                  source.uniform(dtype, std::move(a)),
                                  source.uniform(dtype, std::move(b))};
  };
  return {
      {"vector", of(DType::f32, {8}, {8}, {8}), call},
      {"matrix", of(DType::f32, {4, 8}, {4, 8}, {4, 8}), call},
      {"rank 3", of(DType::f32, {4, 2, 8}, {4, 2, 8}, {4, 2, 8}), call},
      {"integers", of(DType::i32, {4, 8}, {4, 8}, {4, 8}), call, false},
      {"f64", of(DType::f64, {4, 4}, {4, 4}, {4, 4}), call},
      {"f64, all broadcast", of(DType::f64, {4, 1}, {4}, {}), call},
      {"f64 and a number",
       {source.uniform(DType::bool_, {4}, 0, 1), source.uniform(DType::f64, {4})},
       [](std::span<const Tensor> x) { return where(x[0], x[1], 0); }},
  };
}

}  // namespace

extern constinit const OpDef where_op = element_wise::define({
    .name = "where",
    .operands = "condition, a, b",
    .doc = "The first value where the condition is true, the second elsewhere.",
    .example = "where(less(x, y), x, 0)",
    .infer = infer_where,
    .mnemonic = "stablehlo.select",
    .emit = [](const OpCall&, OpEmission& out) { out.op("stablehlo.select").done(); },
    .vjp = where_vjp,
    .samples = where_samples,
    .sharding_conflict = [](const OpCall&, std::span<const Sharding* const> operands)
        -> std::string { return unlike_operands(operands, 1); },
});

Tensor where(In condition, In a, In b) {
  SourceLocation place = effective_source(condition.where);
  DType dtype = element_wise::common_dtype(where_op, a, b);
  DType condition_dtype = element_wise::dtype_of_operand(where_op, condition);
  std::array operands{element_wise::to_tensor(condition, condition_dtype),
                      element_wise::to_tensor(a, dtype), element_wise::to_tensor(b, dtype)};
  element_wise::broadcast_together(where_op, operands, place);
  return record(where_op, nullptr, {&operands[0], &operands[1], &operands[2]}, place);
}

}  // namespace meshard
