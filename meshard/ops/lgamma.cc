#include "meshard/ops/lgamma.h"

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/digamma.h"
#include "meshard/ops/multiply.h"

namespace meshard {

extern constinit const OpDef lgamma_op = element_wise::define({
    .name = "lgamma",
    .operands = "x",
    .example = "lgamma(x)",
    .domain = DTypeDomain::kFloat,
    .mnemonic = "chlo.lgamma",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = multiply(call.cotangents[0], digamma(call.operands[0]));
        },
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, lgamma, 0.5, 4); },
    .traits = {.recomputation = Recomputation::kSeries},
});

Tensor lgamma(In x) { return element_wise::unary(lgamma_op, x); }

}  // namespace meshard
