#include "meshard/ops/nextafter.h"

#include "meshard/ops/definition/element_wise.h"

namespace meshard {

extern constinit const OpDef nextafter_op = element_wise::define({
    .name = "nextafter",
    .operands = "a, b",
    .example = "nextafter(x, y)",
    .domain = DTypeDomain::kFloat,
    .mnemonic = "chlo.next_after",
    .vjp = kNotDifferentiable,
    .samples =
        [](SampleSource& source) { return element_wise::binary_samples(source, nextafter, -2, 2); },
});

Tensor nextafter(In a, In b) { return element_wise::binary(nextafter_op, a, b); }

}  // namespace meshard
