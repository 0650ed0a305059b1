#include "meshard/ops/erf_inv.h"

#include <numbers>

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/exp.h"
#include "meshard/ops/multiply.h"

namespace meshard {

extern constinit const OpDef erf_inv_op = {
    .name = "erf_inv",
    .operands = "x",
    .doc = "The inverse of the error function.",
    .example = "erf_inv(x)",
    .infer = element_wise::infer_same<element_wise::Domain::kFloat>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.op("chlo.erf_inv").done(); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          // sqrt(pi) / 2 * exp(y^2)
          const Tensor& y = call.results[0];
          Tensor scale = element_wise::literal(0.5 / std::numbers::inv_sqrtpi, y);
          out[0] = multiply(call.cotangents[0], multiply(scale, exp(multiply(y, y))));
        },
    .batch = element_wise::batch,
    .samples =
        [](SampleSource& source) {
          return element_wise::unary_samples(source, erf_inv, -0.75, 0.75);
        },
};

Tensor erf_inv(In x) { return element_wise::unary(erf_inv_op, element_wise::Domain::kFloat, x); }

}  // namespace meshard
