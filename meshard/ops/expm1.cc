#include "meshard/ops/expm1.h"

#include "meshard/ops/add.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/internal/complex_emission.h"
#include "meshard/ops/multiply.h"

namespace meshard {

extern constinit const OpDef expm1_op = element_wise::define({
    .name = "expm1",
    .operands = "x",
    .example = "expm1(x)",
    .domain = DTypeDomain::kFloatOrComplex,
    .mnemonic = "stablehlo.exponential_minus_one",
    .emit = internal::emit_expm1,
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = multiply(call.cotangents[0], add(call.results[0], 1));
        },
    .samples = [](SampleSource& source) { return element_wise::unary_samples(source, expm1); },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor expm1(In x) { return element_wise::unary(expm1_op, x); }

}  // namespace meshard
