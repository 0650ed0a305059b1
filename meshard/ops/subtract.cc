#include "meshard/ops/subtract.h"

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/negative.h"

namespace meshard {

extern constinit const OpDef subtract_op = {
    .name = "subtract",
    .operands = "a, b",
    .doc = "The difference of each pair of elements.",
    .example = "subtract(x, y)",
    .infer = element_wise::infer_same<element_wise::Domain::kNumberOrComplex>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.subtract"); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = call.cotangents[0];
          if (call.needs(1)) out[1] = negative(call.cotangents[0]);
        },
    .batch = element_wise::batch,
    .samples = [](SampleSource& source) { return element_wise::binary_samples(source, subtract); },
};

Tensor subtract(In a, In b) {
  return element_wise::binary(subtract_op, element_wise::Domain::kNumberOrComplex, a, b);
}

}  // namespace meshard
