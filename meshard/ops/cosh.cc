#include "meshard/ops/cosh.h"

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/internal/complex_emission.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/sinh.h"

namespace meshard {

extern constinit const OpDef cosh_op = element_wise::define({
    .name = "cosh",
    .operands = "x",
    .example = "cosh(x)",
    .domain = DTypeDomain::kFloatOrComplex,
    .mnemonic = "chlo.cosh",
    .emit = internal::emit_cosh,
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = multiply(call.cotangents[0], sinh(call.operands[0]));
        },
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, cosh, -2, 2); },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor cosh(In x) { return element_wise::unary(cosh_op, x); }

}  // namespace meshard
