#include "meshard/ops/multiply.h"

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"

namespace meshard {

extern constinit const OpDef multiply_op = {
    .name = "multiply",
    .operands = "a, b",
    .doc = "The product of each pair of elements.",
    .example = "multiply(x, y)",
    .infer = element_wise::infer_same<element_wise::Domain::kNumberOrComplex>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.multiply"); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          if (call.needs(0)) out[0] = multiply(call.cotangents[0], call.operands[1]);
          if (call.needs(1)) out[1] = multiply(call.cotangents[0], call.operands[0]);
        },
    .batch = element_wise::batch,
    .samples = [](SampleSource& source) { return element_wise::binary_samples(source, multiply); },
};

Tensor multiply(In a, In b) {
  return element_wise::binary(multiply_op, element_wise::Domain::kNumberOrComplex, a, b);
}

}  // namespace meshard
