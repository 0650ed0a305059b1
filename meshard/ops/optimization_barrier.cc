#include "meshard/ops/optimization_barrier.h"

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/operand.h"

namespace meshard {

extern constinit const OpDef optimization_barrier_op = {
    .name = "optimization_barrier",
    .operands = "x",
    .doc = "The same value, across which the compiler moves and fuses nothing.",
    .example = "optimization_barrier(x)",
    .infer = element_wise::infer_same,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.op("stablehlo.optimization_barrier").done(); },
    .vjp = [](const VjpCall& call,
              std::span<Tensor> out) { out[0] = optimization_barrier(call.cotangents[0]); },
    .samples =
        [](SampleSource& source) {
          auto call = [](std::span<const Tensor> x) { return optimization_barrier(x[0]); };
          return std::vector<OpSample>{
              {"vector", {source.uniform(DType::f32, {8})}, call},
              {"matrix", {source.uniform(DType::f64, {4, 8})}, call},
              {"integers", {source.uniform(DType::i32, {4, 8, 4}, -9, 9)}, call},
          };
        },
};

Tensor optimization_barrier(In x) {
  Tensor operand = operand_tensor(optimization_barrier_op, x);
  return record(optimization_barrier_op, nullptr, {&operand}, x.where);
}

}  // namespace meshard
