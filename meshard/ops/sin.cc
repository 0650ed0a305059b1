#include "meshard/ops/sin.h"

#include "meshard/ops/cos.h"
#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/multiply.h"

namespace meshard {

extern constinit const OpDef sin_op = {
    .name = "sin",
    .operands = "x",
    .doc = "The sine of each element, in radians.",
    .example = "sin(x)",
    .infer = element_wise::infer_same<element_wise::Domain::kFloatOrComplex>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.sine"); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = multiply(call.cotangents[0], cos(call.operands[0]));
        },
    .batch = element_wise::batch,
    .samples = [](SampleSource& source) { return element_wise::unary_samples(source, sin); },
};

Tensor sin(In x) { return element_wise::unary(sin_op, element_wise::Domain::kFloatOrComplex, x); }

}  // namespace meshard
