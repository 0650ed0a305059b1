#include "meshard/ops/log1p.h"

#include "meshard/ops/add.h"
#include "meshard/ops/divide.h"
#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"

namespace meshard {

extern constinit const OpDef log1p_op = {
    .name = "log1p",
    .operands = "x",
    .doc = "log(1 + x), accurate also for small elements.",
    .example = "log1p(x)",
    .infer = element_wise::infer_same<element_wise::Domain::kFloatOrComplex>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.log_plus_one"); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = divide(call.cotangents[0], add(call.operands[0], 1));
        },
    .batch = element_wise::batch,
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, log1p, -0.75, 3); },
};

Tensor log1p(In x) {
  return element_wise::unary(log1p_op, element_wise::Domain::kFloatOrComplex, x);
}

}  // namespace meshard
