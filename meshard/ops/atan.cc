#include "meshard/ops/atan.h"

#include "meshard/ops/add.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/divide.h"
#include "meshard/ops/internal/complex_emission.h"
#include "meshard/ops/multiply.h"

namespace meshard {

extern constinit const OpDef atan_op = element_wise::define({
    .name = "atan",
    .operands = "x",
    .example = "atan(x)",
    .domain = DTypeDomain::kFloatOrComplex,
    .mnemonic = "chlo.atan",
    .emit = internal::emit_atan,
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const Tensor& x = call.operands[0];
          out[0] = divide(call.cotangents[0], add(1, multiply(x, x)));
        },
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, atan, -2, 2); },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor atan(In x) { return element_wise::unary(atan_op, x); }

}  // namespace meshard
