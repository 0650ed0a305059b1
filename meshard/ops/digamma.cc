#include "meshard/ops/digamma.h"

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/zeta.h"

namespace meshard {

extern constinit const OpDef digamma_op = {
    .name = "digamma",
    .operands = "x",
    .doc = "The derivative of lgamma.",
    .example = "digamma(x)",
    .infer = element_wise::infer_same<element_wise::Domain::kFloat>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.op("chlo.digamma").done(); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const Tensor& x = call.operands[0];
          // The trigamma function by zeta: polygamma multiplies by a rounded factor.
          Tensor slope = zeta(element_wise::literal(2, x), x);
          out[0] = multiply(call.cotangents[0], slope);
        },
    .batch = element_wise::batch,
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, digamma, 0.5, 4); },
};

Tensor digamma(In x) { return element_wise::unary(digamma_op, element_wise::Domain::kFloat, x); }

}  // namespace meshard
