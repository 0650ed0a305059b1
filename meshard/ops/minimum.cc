#include "meshard/ops/minimum.h"

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"

namespace meshard {

extern constinit const OpDef minimum_op = {
    .name = "minimum",
    .operands = "a, b",
    .doc = "The smaller of each pair of elements.",
    .example = "minimum(x, y)",
    .infer = element_wise::infer_same<element_wise::Domain::kNumber>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.minimum"); },
    .vjp = element_wise::chosen_vjp,
    .batch = element_wise::batch,
    .samples = [](SampleSource& source) { return element_wise::binary_samples(source, minimum); },
};

Tensor minimum(In a, In b) {
  return element_wise::binary(minimum_op, element_wise::Domain::kNumber, a, b);
}

}  // namespace meshard
