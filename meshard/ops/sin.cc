#include "meshard/ops/sin.h"

#include "meshard/ops/cos.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/multiply.h"

namespace meshard {

extern constinit const OpDef sin_op = element_wise::define({
    .name = "sin",
    .operands = "x",
    .example = "sin(x)",
    .domain = DTypeDomain::kFloatOrComplex,
    .mnemonic = "stablehlo.sine",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = multiply(call.cotangents[0], cos(call.operands[0]));
        },
    .samples = [](SampleSource& source) { return element_wise::unary_samples(source, sin); },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor sin(In x) { return element_wise::unary(sin_op, x); }

}  // namespace meshard
