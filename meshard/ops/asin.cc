#include "meshard/ops/asin.h"

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/internal/complex_emission.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/rsqrt.h"
#include "meshard/ops/subtract.h"

namespace meshard {

extern constinit const OpDef asin_op = element_wise::define({
    .name = "asin",
    .operands = "x",
    .example = "asin(tanh(x))",
    .domain = DTypeDomain::kFloatOrComplex,
    .mnemonic = "chlo.asin",
    .emit = internal::emit_asin,
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const Tensor& x = call.operands[0];
          out[0] = multiply(call.cotangents[0], rsqrt(subtract(1, multiply(x, x))));
        },
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, asin, -0.75, 0.75); },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor asin(In x) { return element_wise::unary(asin_op, x); }

}  // namespace meshard
