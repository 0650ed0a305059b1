#include "meshard/ops/maximum.h"

#include "meshard/ops/definition/element_wise.h"

namespace meshard {

extern constinit const OpDef maximum_op = element_wise::define({
    .name = "maximum",
    .operands = "a, b",
    .example = "maximum(x, y)",
    .domain = DTypeDomain::kNumber,
    .mnemonic = "stablehlo.maximum",
    .vjp = element_wise::chosen_vjp,
    .samples = [](SampleSource& source) { return element_wise::binary_samples(source, maximum); },
});

Tensor maximum(In a, In b) { return element_wise::binary(maximum_op, a, b); }

}  // namespace meshard
