#include "meshard/ops/atan.h"

#include "meshard/ops/add.h"
#include "meshard/ops/divide.h"
#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/multiply.h"

namespace meshard {

extern constinit const OpDef atan_op = {
    .name = "atan",
    .operands = "x",
    .doc = "The arc tangent of each element, in radians.",
    .example = "atan(x)",
    .infer = element_wise::infer_same<element_wise::Domain::kFloat>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.op("chlo.atan").done(); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const Tensor& x = call.operands[0];
          out[0] = divide(call.cotangents[0], add(1, multiply(x, x)));
        },
    .batch = element_wise::batch,
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, atan, -2, 2); },
};

Tensor atan(In x) { return element_wise::unary(atan_op, element_wise::Domain::kFloat, x); }

}  // namespace meshard
