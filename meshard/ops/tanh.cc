#include "meshard/ops/tanh.h"

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/subtract.h"

namespace meshard {

extern constinit const OpDef tanh_op = {
    .name = "tanh",
    .operands = "x",
    .doc = "The hyperbolic tangent of each element.",
    .example = "tanh(x)",
    .infer = element_wise::infer_same<element_wise::Domain::kFloatOrComplex>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.tanh"); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          Tensor slope = subtract(1, multiply(call.results[0], call.results[0]));
          out[0] = multiply(call.cotangents[0], slope);
        },
    .batch = element_wise::batch,
    .samples = [](SampleSource& source) { return element_wise::unary_samples(source, tanh); },
};

Tensor tanh(In x) { return element_wise::unary(tanh_op, element_wise::Domain::kFloatOrComplex, x); }

}  // namespace meshard
