#include "meshard/ops/negative.h"

#include "meshard/ops/definition/element_wise.h"

namespace meshard {

extern constinit const OpDef negative_op = element_wise::define({
    .name = "negative",
    .operands = "x",
    .example = "negative(x)",
    .domain = DTypeDomain::kNumberOrComplex,
    .mnemonic = "stablehlo.negate",
    .vjp = [](const VjpCall& call,
              std::span<Tensor> out) { out[0] = negative(call.cotangents[0]); },
    .samples = [](SampleSource& source) { return element_wise::unary_samples(source, negative); },
});

Tensor negative(In x) { return element_wise::unary(negative_op, x); }

}  // namespace meshard
