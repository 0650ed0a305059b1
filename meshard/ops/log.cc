#include "meshard/ops/log.h"

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/divide.h"
#include "meshard/ops/internal/complex_emission.h"

namespace meshard {

extern constinit const OpDef log_op = element_wise::define({
    .name = "log",
    .operands = "x",
    .example = "log(x)",
    .domain = DTypeDomain::kFloatOrComplex,
    .mnemonic = "stablehlo.log",
    .emit = internal::emit_log,
    .vjp = [](const VjpCall& call,
              std::span<Tensor> out) { out[0] = divide(call.cotangents[0], call.operands[0]); },
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, log, 0.25, 3); },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor log(In x) { return element_wise::unary(log_op, x); }

}  // namespace meshard
