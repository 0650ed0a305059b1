#include "meshard/ops/logistic.h"

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/subtract.h"

namespace meshard {

extern constinit const OpDef logistic_op = element_wise::define({
    .name = "logistic",
    .operands = "x",
    .example = "logistic(x)",
    .domain = DTypeDomain::kFloatOrComplex,
    .mnemonic = "stablehlo.logistic",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          Tensor slope = multiply(call.results[0], subtract(1, call.results[0]));
          out[0] = multiply(call.cotangents[0], slope);
        },
    .samples = [](SampleSource& source) { return element_wise::unary_samples(source, logistic); },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor logistic(In x) { return element_wise::unary(logistic_op, x); }

}  // namespace meshard
