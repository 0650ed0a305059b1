#include "meshard/ops/isfinite.h"

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"

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
  return element_wise::unary(isfinite_op, element_wise::Domain::kFloat, x,
                             element_wise::Gives::kBool);
}

}  // namespace meshard
