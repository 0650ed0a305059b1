#include "meshard/ops/stop_gradient.h"

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/emission.h"

namespace meshard {

extern constinit const OpDef stop_gradient_op = element_wise::define({
    .name = "stop_gradient",
    .operands = "x",
    .example = "stop_gradient(x)",
    .domain = DTypeDomain::kAny,
    // A reshape to the same shape; the compiler removes it.
    .emit = [](const OpCall&, OpEmission& out) { out.op("stablehlo.reshape").done(); },
    .vjp = element_wise::zero_vjp,
    .samples =
        [](SampleSource& source) {
          std::vector<OpSample> samples = element_wise::unary_samples(source, stop_gradient);
          // Its derivative is zero by definition, not that of its values.
          for (OpSample& sample : samples) sample.check_vjp = false;
          return samples;
        },
    .traits = {.recomputation = Recomputation::kFree, .stops_gradient = true},
});

Tensor stop_gradient(In x) { return element_wise::unary(stop_gradient_op, x); }

}  // namespace meshard
