#include "meshard/ops/sinh.h"

#include "meshard/ops/cosh.h"
#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/multiply.h"

namespace meshard {

extern constinit const OpDef sinh_op = {
    .name = "sinh",
    .operands = "x",
    .doc = "The hyperbolic sine of each element.",
    .example = "sinh(x)",
    .infer = element_wise::infer_same<element_wise::Domain::kFloat>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.op("chlo.sinh").done(); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = multiply(call.cotangents[0], cosh(call.operands[0]));
        },
    .batch = element_wise::batch,
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, sinh, -2, 2); },
};

Tensor sinh(In x) { return element_wise::unary(sinh_op, element_wise::Domain::kFloat, x); }

}  // namespace meshard
