#include "meshard/ops/acos.h"

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/negative.h"
#include "meshard/ops/rsqrt.h"
#include "meshard/ops/subtract.h"

namespace meshard {

extern constinit const OpDef acos_op = {
    .name = "acos",
    .operands = "x",
    .doc = "The arc cosine of each element, in radians.",
    .example = "acos(tanh(x))",
    .infer = element_wise::infer_same<element_wise::Domain::kFloat>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.op("chlo.acos").done(); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const Tensor& x = call.operands[0];
          out[0] = negative(multiply(call.cotangents[0], rsqrt(subtract(1, multiply(x, x)))));
        },
    .batch = element_wise::batch,
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, acos, -0.75, 0.75); },
};

Tensor acos(In x) { return element_wise::unary(acos_op, element_wise::Domain::kFloat, x); }

}  // namespace meshard
