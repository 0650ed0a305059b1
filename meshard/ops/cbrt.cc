#include "meshard/ops/cbrt.h"

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/divide.h"
#include "meshard/ops/multiply.h"

namespace meshard {

extern constinit const OpDef cbrt_op = element_wise::define({
    .name = "cbrt",
    .operands = "x",
    .example = "cbrt(x)",
    .domain = DTypeDomain::kFloat,
    .mnemonic = "stablehlo.cbrt",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          // y = x^(1/3), so dy/dx = 1 / 3y^2.
          Tensor third = element_wise::literal(1.0 / 3.0, call.results[0]);
          Tensor squared = multiply(call.results[0], call.results[0]);
          out[0] = multiply(call.cotangents[0], divide(third, squared));
        },
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, cbrt, 0.25, 3); },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor cbrt(In x) { return element_wise::unary(cbrt_op, x); }

}  // namespace meshard
