#include "meshard/ops/erf.h"

#include <numbers>

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/exp.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/negative.h"

namespace meshard {

extern constinit const OpDef erf_op = element_wise::define({
    .name = "erf",
    .operands = "x",
    .example = "erf(x)",
    .domain = DTypeDomain::kFloat,
    .mnemonic = "chlo.erf",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          // 2 / sqrt(pi) * exp(-x^2)
          const Tensor& x = call.operands[0];
          Tensor bell = exp(negative(multiply(x, x)));
          Tensor scale = element_wise::literal(2 * std::numbers::inv_sqrtpi, x);
          out[0] = multiply(call.cotangents[0], multiply(scale, bell));
        },
    .samples = [](SampleSource& source) { return element_wise::unary_samples(source, erf); },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor erf(In x) { return element_wise::unary(erf_op, x); }

}  // namespace meshard
