#include "meshard/ops/asinh.h"

#include "meshard/ops/add.h"
#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/rsqrt.h"

namespace meshard {

extern constinit const OpDef asinh_op = {
    .name = "asinh",
    .operands = "x",
    .doc = "The inverse hyperbolic sine of each element.",
    .example = "asinh(x)",
    .infer = element_wise::infer_same<element_wise::Domain::kFloat>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.op("chlo.asinh").done(); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const Tensor& x = call.operands[0];
          out[0] = multiply(call.cotangents[0], rsqrt(add(1, multiply(x, x))));
        },
    .batch = element_wise::batch,
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, asinh, -2, 2); },
};

Tensor asinh(In x) { return element_wise::unary(asinh_op, element_wise::Domain::kFloat, x); }

}  // namespace meshard
