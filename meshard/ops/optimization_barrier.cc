#include "meshard/ops/optimization_barrier.h"

#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/definition/operand.h"

namespace meshard {
namespace {

ShardingRule optimization_barrier_rule(const OpCall& call) {
  ShardingRuleBuilder builder;
  for (const TensorType* type : call.operands) {
    TensorFactors factors;
    for (std::int64_t size : type->shape) factors.push_back({builder.factor(size)});
    builder.operand(factors).result(factors);
  }
  return builder.build();
}

// The defined cotangents pass a barrier of their own.
void optimization_barrier_vjp(const VjpCall& call, std::span<Tensor> out) {
  std::vector<Tensor> cotangents;
  for (const Tensor& cotangent : call.cotangents)
    if (cotangent.defined()) cotangents.push_back(cotangent);
  cotangents = optimization_barrier(cotangents, call.node.where());
  std::size_t next = 0;
  for (std::size_t i = 0; i < out.size(); ++i)
    if (call.cotangents[i].defined()) out[i] = cotangents[next++];
}

}  // namespace

extern constinit const OpDef optimization_barrier_op = {
    .name = "optimization_barrier",
    .operands = "tensors...",
    .doc = "The same values; the compiler does not move or fuse operations across them.",
    .example = "optimization_barrier(x)",
    .infer =
        [](const OpCall& call, ResultTypes& results) {
          if (call.operands.empty()) call.fail("takes at least one tensor");
          for (const TensorType* type : call.operands) results.push_back(*type);
        },
    .sharding_rule = optimization_barrier_rule,
    .emit = [](const OpCall&, OpEmission& out) { out.op("stablehlo.optimization_barrier").done(); },
    .vjp = optimization_barrier_vjp,
    .batch = batch_unchanged,
    .samples =
        [](SampleSource& source) {
          auto call = [](std::span<const Tensor> x) { return optimization_barrier(x[0]); };
          auto second = [](std::span<const Tensor> x) {
            return optimization_barrier({x.begin(), x.end()})[1];
          };
          return std::vector<OpSample>{
              {"vector", {source.uniform(DType::f32, {8})}, call},
              {"matrix", {source.uniform(DType::f64, {4, 8})}, call},
              {"integers", {source.uniform(DType::i32, {4, 8, 4}, -9, 9)}, call},
              {"two",
               {source.uniform(DType::f64, {4}), source.uniform(DType::f64, {8, 4})},
               second},
          };
        },
};

std::vector<Tensor> optimization_barrier(const std::vector<Tensor>& tensors, SourceLocation where) {
  if (tensors.empty()) return {};
  std::vector<const Tensor*> operands;
  for (const Tensor& tensor : tensors) operands.push_back(&tensor);
  Tensor first =
      record(optimization_barrier_op, nullptr, std::span<const Tensor* const>(operands), where);
  std::vector<Tensor> results;
  for (std::uint32_t i = 0; i < tensors.size(); ++i)
    results.emplace_back(Value(first.value().node(), i));
  return results;
}

Tensor optimization_barrier(In x) {
  return optimization_barrier(std::vector{operand_tensor(optimization_barrier_op, x)}, x.where)[0];
}

}  // namespace meshard
