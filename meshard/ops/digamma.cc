#include "meshard/ops/digamma.h"

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/zeta.h"

namespace meshard {

extern constinit const OpDef digamma_op = element_wise::define({
    .name = "digamma",
    .operands = "x",
    .example = "digamma(x)",
    .domain = DTypeDomain::kFloat,
    .mnemonic = "chlo.digamma",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const Tensor& x = call.operands[0];
          // The trigamma function by zeta: polygamma multiplies by a rounded factor.
          Tensor slope = zeta(element_wise::literal(2, x), x);
          out[0] = multiply(call.cotangents[0], slope);
        },
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, digamma, 0.5, 4); },
    .traits = {.recomputation = Recomputation::kSeries},
});

Tensor digamma(In x) { return element_wise::unary(digamma_op, x); }

}  // namespace meshard
