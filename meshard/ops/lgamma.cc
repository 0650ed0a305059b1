#include "meshard/ops/lgamma.h"

#include "meshard/ops/digamma.h"
#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/multiply.h"

namespace meshard {

extern constinit const OpDef lgamma_op = {
    .name = "lgamma",
    .operands = "x",
    .doc = "The logarithm of the absolute value of the gamma function.",
    .example = "lgamma(x)",
    .infer = element_wise::infer_same<element_wise::Domain::kFloat>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.op("chlo.lgamma").done(); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = multiply(call.cotangents[0], digamma(call.operands[0]));
        },
    .batch = element_wise::batch,
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, lgamma, 0.5, 4); },
};

Tensor lgamma(In x) { return element_wise::unary(lgamma_op, element_wise::Domain::kFloat, x); }

}  // namespace meshard
