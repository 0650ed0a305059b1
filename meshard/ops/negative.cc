#include "meshard/ops/negative.h"

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"

namespace meshard {

extern constinit const OpDef negative_op = {
    .name = "negative",
    .operands = "x",
    .doc = "The elements with their sign changed.",
    .example = "negative(x)",
    .infer = element_wise::infer_same<element_wise::Domain::kNumberOrComplex>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.negate"); },
    .vjp = [](const VjpCall& call,
              std::span<Tensor> out) { out[0] = negative(call.cotangents[0]); },
    .batch = element_wise::batch,
    .samples = [](SampleSource& source) { return element_wise::unary_samples(source, negative); },
};

Tensor negative(In x) {
  return element_wise::unary(negative_op, element_wise::Domain::kNumberOrComplex, x);
}

}  // namespace meshard
