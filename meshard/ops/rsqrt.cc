#include "meshard/ops/rsqrt.h"

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/divide.h"
#include "meshard/ops/multiply.h"

namespace meshard {

extern constinit const OpDef rsqrt_op = element_wise::define({
    .name = "rsqrt",
    .operands = "x",
    .example = "rsqrt(x)",
    .domain = DTypeDomain::kFloatOrComplex,
    .mnemonic = "stablehlo.rsqrt",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          // y = x^(-1/2), so dy/dx = -y / 2x.
          Tensor half = element_wise::literal(-0.5, call.results[0]);
          out[0] = multiply(call.cotangents[0],
                            multiply(half, divide(call.results[0], call.operands[0])));
        },
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, rsqrt, 0.25, 3); },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor rsqrt(In x) { return element_wise::unary(rsqrt_op, x); }

}  // namespace meshard
