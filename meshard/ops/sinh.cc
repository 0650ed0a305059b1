#include "meshard/ops/sinh.h"

#include "meshard/ops/cosh.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/internal/complex_emission.h"
#include "meshard/ops/multiply.h"

namespace meshard {

extern constinit const OpDef sinh_op = element_wise::define({
    .name = "sinh",
    .operands = "x",
    .example = "sinh(x)",
    .domain = DTypeDomain::kFloatOrComplex,
    .mnemonic = "chlo.sinh",
    .emit = internal::emit_sinh,
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = multiply(call.cotangents[0], cosh(call.operands[0]));
        },
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, sinh, -2, 2); },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor sinh(In x) { return element_wise::unary(sinh_op, x); }

}  // namespace meshard
