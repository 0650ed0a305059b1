#include "meshard/ops/atanh.h"

#include "meshard/ops/add.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/divide.h"
#include "meshard/ops/internal/complex_emission.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/subtract.h"

namespace meshard {

extern constinit const OpDef atanh_op = element_wise::define({
    .name = "atanh",
    .operands = "x",
    .example = "atanh(tanh(x))",
    .domain = DTypeDomain::kFloatOrComplex,
    .mnemonic = "chlo.atanh",
    .emit = internal::emit_atanh,
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          // Not 1 - x^2, which loses precision near 1.
          const Tensor& x = call.operands[0];
          out[0] = divide(call.cotangents[0], multiply(subtract(1, x), add(1, x)));
        },
    .samples =
        [](SampleSource& source) {
          return element_wise::unary_samples(source, atanh, -0.75, 0.75);
        },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor atanh(In x) { return element_wise::unary(atanh_op, x); }

}  // namespace meshard
