#include "meshard/ops/erfc.h"

#include <numbers>

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/exp.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/negative.h"

namespace meshard {

extern constinit const OpDef erfc_op = {
    .name = "erfc",
    .operands = "x",
    .doc = "1 - erf(x), accurate also where the result is close to 0.",
    .example = "erfc(x)",
    .infer = element_wise::infer_same<element_wise::Domain::kFloat>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.op("chlo.erfc").done(); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          // -2 / sqrt(pi) * exp(-x^2)
          const Tensor& x = call.operands[0];
          Tensor bell = exp(negative(multiply(x, x)));
          Tensor scale = element_wise::literal(-2 * std::numbers::inv_sqrtpi, x);
          out[0] = multiply(call.cotangents[0], multiply(scale, bell));
        },
    .batch = element_wise::batch,
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, erfc, -2, 2); },
};

Tensor erfc(In x) { return element_wise::unary(erfc_op, element_wise::Domain::kFloat, x); }

}  // namespace meshard
