#include "meshard/ops/cos.h"

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/negative.h"
#include "meshard/ops/sin.h"

namespace meshard {

extern constinit const OpDef cos_op = element_wise::define({
    .name = "cos",
    .operands = "x",
    .example = "cos(x)",
    .domain = DTypeDomain::kFloatOrComplex,
    .mnemonic = "stablehlo.cosine",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = multiply(call.cotangents[0], negative(sin(call.operands[0])));
        },
    .samples = [](SampleSource& source) { return element_wise::unary_samples(source, cos); },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor cos(In x) { return element_wise::unary(cos_op, x); }

}  // namespace meshard
