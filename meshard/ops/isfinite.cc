#include "meshard/ops/isfinite.h"

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/imag.h"
#include "meshard/ops/logical.h"
#include "meshard/ops/real.h"

namespace meshard {

extern constinit const OpDef isfinite_op = {
    .name = "isfinite",
    .operands = "x",
    .doc = "True where an element is neither infinite nor NaN.",
    .example = "isfinite(x)",
    .infer = element_wise::infer_bool<element_wise::Domain::kFloat>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.op("stablehlo.is_finite").done(); },
    .vjp = kNotDifferentiable,
    .batch = element_wise::batch,
    .samples = [](SampleSource& source) { return element_wise::unary_samples(source, isfinite); },
};

Tensor isfinite(In x) {
  if (x.tensor && is_complex(element_wise::dtype_of_operand(isfinite_op, x))) {
    SourceScope line(x.where);
    return logical_and(isfinite(real(x)), isfinite(imag(x)));
  }
  return element_wise::unary(isfinite_op, element_wise::Domain::kFloat, x,
                             element_wise::Gives::kBool);
}

}  // namespace meshard
