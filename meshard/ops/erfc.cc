#include "meshard/ops/erfc.h"

#include <numbers>

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/exp.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/negative.h"

namespace meshard {

extern constinit const OpDef erfc_op = element_wise::define({
    .name = "erfc",
    .operands = "x",
    .example = "erfc(x)",
    .domain = DTypeDomain::kFloat,
    .mnemonic = "chlo.erfc",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          // -2 / sqrt(pi) * exp(-x^2)
          const Tensor& x = call.operands[0];
          Tensor bell = exp(negative(multiply(x, x)));
          Tensor scale = element_wise::literal(-2 * std::numbers::inv_sqrtpi, x);
          out[0] = multiply(call.cotangents[0], multiply(scale, bell));
        },
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, erfc, -2, 2); },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor erfc(In x) { return element_wise::unary(erfc_op, x); }

}  // namespace meshard
