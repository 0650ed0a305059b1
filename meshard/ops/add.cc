#include "meshard/ops/add.h"

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"

namespace meshard {

extern constinit const OpDef add_op = {
    .name = "add",
    .operands = "a, b",
    .doc = "The sum of each pair of elements.",
    .example = "add(x, y)",
    .infer = element_wise::infer_same<element_wise::Domain::kNumberOrComplex>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.add"); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = call.cotangents[0];
          out[1] = call.cotangents[0];
        },
    .batch = element_wise::batch,
    .samples = [](SampleSource& source) { return element_wise::binary_samples(source, add); },
};

Tensor add(In a, In b) {
  return element_wise::binary(add_op, element_wise::Domain::kNumberOrComplex, a, b);
}

}  // namespace meshard
