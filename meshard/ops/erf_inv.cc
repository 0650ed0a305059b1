#include "meshard/ops/erf_inv.h"

#include <numbers>

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/exp.h"
#include "meshard/ops/multiply.h"

namespace meshard {

extern constinit const OpDef erf_inv_op = element_wise::define({
    .name = "erf_inv",
    .operands = "x",
    .example = "erf_inv(x)",
    .domain = DTypeDomain::kFloat,
    .mnemonic = "chlo.erf_inv",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          // sqrt(pi) / 2 * exp(y^2)
          const Tensor& y = call.results[0];
          Tensor scale = element_wise::literal(0.5 / std::numbers::inv_sqrtpi, y);
          out[0] = multiply(call.cotangents[0], multiply(scale, exp(multiply(y, y))));
        },
    .samples =
        [](SampleSource& source) {
          return element_wise::unary_samples(source, erf_inv, -0.75, 0.75);
        },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor erf_inv(In x) { return element_wise::unary(erf_inv_op, x); }

}  // namespace meshard
