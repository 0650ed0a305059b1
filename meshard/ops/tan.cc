#include "meshard/ops/tan.h"

#include "meshard/ops/add.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/multiply.h"

namespace meshard {

extern constinit const OpDef tan_op = element_wise::define({
    .name = "tan",
    .operands = "x",
    .example = "tan(x)",
    .domain = DTypeDomain::kFloatOrComplex,
    .mnemonic = "stablehlo.tan",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          Tensor slope = add(1, multiply(call.results[0], call.results[0]));
          out[0] = multiply(call.cotangents[0], slope);
        },
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, tan, -1.25, 1.25); },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor tan(In x) { return element_wise::unary(tan_op, x); }

}  // namespace meshard
