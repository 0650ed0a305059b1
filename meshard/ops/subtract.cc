#include "meshard/ops/subtract.h"

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/negative.h"

namespace meshard {

extern constinit const OpDef subtract_op = element_wise::define({
    .name = "subtract",
    .operands = "a, b",
    .example = "subtract(x, y)",
    .domain = DTypeDomain::kNumberOrComplex,
    .mnemonic = "stablehlo.subtract",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = call.cotangents[0];
          if (call.needs(1)) out[1] = negative(call.cotangents[0]);
        },
    .samples = [](SampleSource& source) { return element_wise::binary_samples(source, subtract); },
});

Tensor subtract(In a, In b) { return element_wise::binary(subtract_op, a, b); }

}  // namespace meshard
