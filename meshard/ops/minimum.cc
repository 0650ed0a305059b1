#include "meshard/ops/minimum.h"

#include "meshard/ops/definition/element_wise.h"

namespace meshard {

extern constinit const OpDef minimum_op = element_wise::define({
    .name = "minimum",
    .operands = "a, b",
    .example = "minimum(x, y)",
    .domain = DTypeDomain::kNumber,
    .mnemonic = "stablehlo.minimum",
    .vjp = element_wise::chosen_vjp,
    .samples = [](SampleSource& source) { return element_wise::binary_samples(source, minimum); },
});

Tensor minimum(In a, In b) { return element_wise::binary(minimum_op, a, b); }

}  // namespace meshard
