#include "meshard/ops/isfinite.h"

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/imag.h"
#include "meshard/ops/logical.h"
#include "meshard/ops/real.h"

namespace meshard {

extern constinit const OpDef isfinite_op = element_wise::define({
    .name = "isfinite",
    .operands = "x",
    .example = "isfinite(x)",
    .domain = DTypeDomain::kFloat,
    .gives_bools = true,
    .mnemonic = "stablehlo.is_finite",
    .vjp = kNotDifferentiable,
    .samples = [](SampleSource& source) { return element_wise::unary_samples(source, isfinite); },
});

Tensor isfinite(In x) {
  if (x.tensor && is_complex(element_wise::dtype_of_operand(isfinite_op, x))) {
    SourceScope line(x.where);
    return logical_and(isfinite(real(x)), isfinite(imag(x)));
  }
  return element_wise::unary(isfinite_op, x);
}

}  // namespace meshard
