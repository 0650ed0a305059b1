#include "meshard/ops/maximum.h"

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"

namespace meshard {

extern constinit const OpDef maximum_op = {
    .name = "maximum",
    .operands = "a, b",
    .doc = "The larger of each pair of elements.",
    .example = "maximum(x, y)",
    .infer = element_wise::infer_same<element_wise::Domain::kNumber>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.maximum"); },
    .vjp = element_wise::chosen_vjp,
    .batch = element_wise::batch,
    .samples = [](SampleSource& source) { return element_wise::binary_samples(source, maximum); },
};

Tensor maximum(In a, In b) {
  return element_wise::binary(maximum_op, element_wise::Domain::kNumber, a, b);
}

}  // namespace meshard
