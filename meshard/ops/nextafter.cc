#include "meshard/ops/nextafter.h"

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"

namespace meshard {

extern constinit const OpDef nextafter_op = {
    .name = "nextafter",
    .operands = "a, b",
    .doc = "The next representable number after the first element, toward the second.",
    .example = "nextafter(x, y)",
    .infer = element_wise::infer_same<element_wise::Domain::kFloat>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.op("chlo.next_after").done(); },
    .vjp = kNotDifferentiable,
    .batch = element_wise::batch,
    .samples =
        [](SampleSource& source) { return element_wise::binary_samples(source, nextafter, -2, 2); },
};

Tensor nextafter(In a, In b) {
  return element_wise::binary(nextafter_op, element_wise::Domain::kFloat, a, b);
}

}  // namespace meshard
