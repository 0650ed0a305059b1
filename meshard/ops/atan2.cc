#include "meshard/ops/atan2.h"

#include "meshard/ops/add.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/divide.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/negative.h"

namespace meshard {

extern constinit const OpDef atan2_op = element_wise::define({
    .name = "atan2",
    .operands = "a, b",
    .example = "atan2(x, y)",
    .domain = DTypeDomain::kFloat,
    .mnemonic = "stablehlo.atan2",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const Tensor &a = call.operands[0], &b = call.operands[1];
          // Divides before multiplying by the cotangent: where the squares overflow, the quotients
          // are 0.
          Tensor square = add(multiply(a, a), multiply(b, b));
          if (call.needs(0)) out[0] = multiply(call.cotangents[0], divide(b, square));
          if (call.needs(1)) out[1] = negative(multiply(call.cotangents[0], divide(a, square)));
        },
    .samples =
        [](SampleSource& source) { return element_wise::binary_samples(source, atan2, 0.25, 2); },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor atan2(In a, In b) { return element_wise::binary(atan2_op, a, b); }

}  // namespace meshard
