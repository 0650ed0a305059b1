#include "meshard/ops/add.h"

#include "meshard/ops/definition/element_wise.h"

namespace meshard {

extern constinit const OpDef add_op = element_wise::define({
    .name = "add",
    .operands = "a, b",
    .example = "add(x, y)",
    .domain = DTypeDomain::kNumberOrComplex,
    .mnemonic = "stablehlo.add",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = call.cotangents[0];
          out[1] = call.cotangents[0];
        },
    .samples = [](SampleSource& source) { return element_wise::binary_samples(source, add); },
});

Tensor add(In a, In b) { return element_wise::binary(add_op, a, b); }

}  // namespace meshard
