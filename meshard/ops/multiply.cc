#include "meshard/ops/multiply.h"

#include "meshard/ops/definition/element_wise.h"

namespace meshard {

extern constinit const OpDef multiply_op = element_wise::define({
    .name = "multiply",
    .operands = "a, b",
    .example = "multiply(x, y)",
    .domain = DTypeDomain::kNumberOrComplex,
    .mnemonic = "stablehlo.multiply",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          if (call.needs(0)) out[0] = multiply(call.cotangents[0], call.operands[1]);
          if (call.needs(1)) out[1] = multiply(call.cotangents[0], call.operands[0]);
        },
    .samples = [](SampleSource& source) { return element_wise::binary_samples(source, multiply); },
});

Tensor multiply(In a, In b) { return element_wise::binary(multiply_op, a, b); }

}  // namespace meshard
