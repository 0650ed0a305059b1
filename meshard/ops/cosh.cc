#include "meshard/ops/cosh.h"

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/sinh.h"

namespace meshard {

extern constinit const OpDef cosh_op = {
    .name = "cosh",
    .operands = "x",
    .doc = "The hyperbolic cosine of each element.",
    .example = "cosh(x)",
    .infer = element_wise::infer_same<element_wise::Domain::kFloat>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.op("chlo.cosh").done(); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = multiply(call.cotangents[0], sinh(call.operands[0]));
        },
    .batch = element_wise::batch,
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, cosh, -2, 2); },
};

Tensor cosh(In x) { return element_wise::unary(cosh_op, element_wise::Domain::kFloat, x); }

}  // namespace meshard
