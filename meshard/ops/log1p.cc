#include "meshard/ops/log1p.h"

#include "meshard/ops/add.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/divide.h"
#include "meshard/ops/internal/complex_emission.h"

namespace meshard {

extern constinit const OpDef log1p_op = element_wise::define({
    .name = "log1p",
    .operands = "x",
    .example = "log1p(x)",
    .domain = DTypeDomain::kFloatOrComplex,
    .mnemonic = "stablehlo.log_plus_one",
    .emit = internal::emit_log1p,
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = divide(call.cotangents[0], add(call.operands[0], 1));
        },
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, log1p, -0.75, 3); },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor log1p(In x) { return element_wise::unary(log1p_op, x); }

}  // namespace meshard
