#include "meshard/ops/divide.h"

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/negative.h"

namespace meshard {

extern constinit const OpDef divide_op = element_wise::define({
    .name = "divide",
    .operands = "a, b",
    .example = "divide(x, y)",
    .domain = DTypeDomain::kFloatOrComplex,
    .mnemonic = "stablehlo.divide",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          Tensor scaled = divide(call.cotangents[0], call.operands[1]);
          out[0] = scaled;
          if (call.needs(1)) out[1] = negative(multiply(scaled, call.results[0]));
        },
    .samples =
        [](SampleSource& source) { return element_wise::binary_samples(source, divide, 0.5, 2.5); },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor divide(In a, In b) { return element_wise::binary(divide_op, a, b); }

}  // namespace meshard
