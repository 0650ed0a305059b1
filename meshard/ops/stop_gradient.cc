#include "meshard/ops/stop_gradient.h"

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"

namespace meshard {

extern constinit const OpDef stop_gradient_op = {
    .name = "stop_gradient",
    .operands = "x",
    .doc = "The operand itself, through which no cotangent passes.",
    .example = "stop_gradient(x)",
    .infer = element_wise::infer_same<>,
    .sharding_rule = element_wise::rule,
    // A reshape to the same shape; the compiler removes it.
    .emit = [](const OpCall&, OpEmission& out) { out.op("stablehlo.reshape").done(); },
    .vjp = element_wise::zero_vjp,
    .batch = element_wise::batch,
    .samples =
        [](SampleSource& source) {
          std::vector<OpSample> samples = element_wise::unary_samples(source, stop_gradient);
          // Its derivative is zero by definition, not that of its values.
          for (OpSample& sample : samples) sample.check_vjp = false;
          return samples;
        },
};

Tensor stop_gradient(In x) {
  return element_wise::unary(stop_gradient_op, element_wise::Domain::kAny, x);
}

}  // namespace meshard
