#include "meshard/ops/exp.h"

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/internal/complex_emission.h"
#include "meshard/ops/multiply.h"

namespace meshard {

extern constinit const OpDef exp_op = element_wise::define({
    .name = "exp",
    .operands = "x",
    .example = "exp(x)",
    .domain = DTypeDomain::kFloatOrComplex,
    .mnemonic = "stablehlo.exponential",
    .emit = internal::emit_exp,
    .vjp = [](const VjpCall& call,
              std::span<Tensor> out) { out[0] = multiply(call.cotangents[0], call.results[0]); },
    .samples = [](SampleSource& source) { return element_wise::unary_samples(source, exp); },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor exp(In x) { return element_wise::unary(exp_op, x); }

}  // namespace meshard
