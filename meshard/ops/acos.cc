#include "meshard/ops/acos.h"

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/internal/complex_emission.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/negative.h"
#include "meshard/ops/rsqrt.h"
#include "meshard/ops/subtract.h"

namespace meshard {

extern constinit const OpDef acos_op = element_wise::define({
    .name = "acos",
    .operands = "x",
    .example = "acos(tanh(x))",
    .domain = DTypeDomain::kFloatOrComplex,
    .mnemonic = "chlo.acos",
    .emit = internal::emit_acos,
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const Tensor& x = call.operands[0];
          out[0] = negative(multiply(call.cotangents[0], rsqrt(subtract(1, multiply(x, x)))));
        },
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, acos, -0.75, 0.75); },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor acos(In x) { return element_wise::unary(acos_op, x); }

}  // namespace meshard
