#include "meshard/ops/tan.h"

#include "meshard/ops/add.h"
#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/multiply.h"

namespace meshard {

extern constinit const OpDef tan_op = {
    .name = "tan",
    .operands = "x",
    .doc = "The tangent of each element, in radians.",
    .example = "tan(x)",
    .infer = element_wise::infer_same<element_wise::Domain::kFloatOrComplex>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.tan"); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          Tensor slope = add(1, multiply(call.results[0], call.results[0]));
          out[0] = multiply(call.cotangents[0], slope);
        },
    .batch = element_wise::batch,
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, tan, -1.25, 1.25); },
};

Tensor tan(In x) { return element_wise::unary(tan_op, element_wise::Domain::kFloatOrComplex, x); }

}  // namespace meshard
