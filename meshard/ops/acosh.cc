#include "meshard/ops/acosh.h"

#include "meshard/ops/add.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/internal/complex_emission.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/rsqrt.h"
#include "meshard/ops/subtract.h"

namespace meshard {

extern constinit const OpDef acosh_op = element_wise::define({
    .name = "acosh",
    .operands = "x",
    .example = "acosh(add(1, exp(x)))",
    .domain = DTypeDomain::kFloatOrComplex,
    .mnemonic = "chlo.acosh",
    .emit = internal::emit_acosh,
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          // Not x^2 - 1, which loses precision near 1; and of complex numbers two roots, because
          // the product has another branch cut.
          const Tensor& x = call.operands[0];
          Tensor before = subtract(x, 1), after = add(x, 1);
          Tensor slope = is_complex(x.dtype()) ? multiply(rsqrt(before), rsqrt(after))
                                               : rsqrt(multiply(before, after));
          out[0] = multiply(call.cotangents[0], slope);
        },
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, acosh, 1.25, 3); },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor acosh(In x) { return element_wise::unary(acosh_op, x); }

}  // namespace meshard
