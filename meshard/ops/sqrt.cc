#include "meshard/ops/sqrt.h"

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/divide.h"
#include "meshard/ops/internal/complex_emission.h"
#include "meshard/ops/multiply.h"

namespace meshard {

extern constinit const OpDef sqrt_op = element_wise::define({
    .name = "sqrt",
    .operands = "x",
    .example = "sqrt(x)",
    .domain = DTypeDomain::kFloatOrComplex,
    .mnemonic = "stablehlo.sqrt",
    .emit = internal::emit_sqrt,
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          Tensor half = element_wise::literal(0.5, call.results[0]);
          out[0] = multiply(call.cotangents[0], divide(half, call.results[0]));
        },
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, sqrt, 0.25, 3); },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor sqrt(In x) { return element_wise::unary(sqrt_op, x); }

}  // namespace meshard
