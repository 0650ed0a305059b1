#include "meshard/ops/tanh.h"

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/internal/complex_emission.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/subtract.h"

namespace meshard {

extern constinit const OpDef tanh_op = element_wise::define({
    .name = "tanh",
    .operands = "x",
    .example = "tanh(x)",
    .domain = DTypeDomain::kFloatOrComplex,
    .mnemonic = "stablehlo.tanh",
    .emit = internal::emit_tanh,
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          Tensor slope = subtract(1, multiply(call.results[0], call.results[0]));
          out[0] = multiply(call.cotangents[0], slope);
        },
    .samples = [](SampleSource& source) { return element_wise::unary_samples(source, tanh); },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor tanh(In x) { return element_wise::unary(tanh_op, x); }

}  // namespace meshard
