#include "meshard/ops/asin.h"

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/rsqrt.h"
#include "meshard/ops/subtract.h"

namespace meshard {

extern constinit const OpDef asin_op = {
    .name = "asin",
    .operands = "x",
    .doc = "The arc sine of each element, in radians.",
    .example = "asin(tanh(x))",
    .infer = element_wise::infer_same<element_wise::Domain::kFloat>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.op("chlo.asin").done(); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const Tensor& x = call.operands[0];
          out[0] = multiply(call.cotangents[0], rsqrt(subtract(1, multiply(x, x))));
        },
    .batch = element_wise::batch,
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, asin, -0.75, 0.75); },
};

Tensor asin(In x) { return element_wise::unary(asin_op, element_wise::Domain::kFloat, x); }

}  // namespace meshard
