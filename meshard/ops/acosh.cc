#include "meshard/ops/acosh.h"

#include "meshard/ops/add.h"
#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/rsqrt.h"
#include "meshard/ops/subtract.h"

namespace meshard {

extern constinit const OpDef acosh_op = {
    .name = "acosh",
    .operands = "x",
    .doc = "The inverse hyperbolic cosine of each element, 0 or more.",
    .example = "acosh(add(1, exp(x)))",
    .infer = element_wise::infer_same<element_wise::Domain::kFloat>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.op("chlo.acosh").done(); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          // Not x^2 - 1, which loses precision near 1.
          const Tensor& x = call.operands[0];
          out[0] = multiply(call.cotangents[0], rsqrt(multiply(subtract(x, 1), add(x, 1))));
        },
    .batch = element_wise::batch,
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, acosh, 1.25, 3); },
};

Tensor acosh(In x) { return element_wise::unary(acosh_op, element_wise::Domain::kFloat, x); }

}  // namespace meshard
