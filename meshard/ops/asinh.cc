#include "meshard/ops/asinh.h"

#include "meshard/ops/add.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/internal/complex_emission.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/rsqrt.h"

namespace meshard {

extern constinit const OpDef asinh_op = element_wise::define({
    .name = "asinh",
    .operands = "x",
    .example = "asinh(x)",
    .domain = DTypeDomain::kFloatOrComplex,
    .mnemonic = "chlo.asinh",
    .emit = internal::emit_asinh,
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const Tensor& x = call.operands[0];
          out[0] = multiply(call.cotangents[0], rsqrt(add(1, multiply(x, x))));
        },
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, asinh, -2, 2); },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor asinh(In x) { return element_wise::unary(asinh_op, x); }

}  // namespace meshard
