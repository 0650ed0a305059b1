#include "meshard/ops/cos.h"

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/negative.h"
#include "meshard/ops/sin.h"

namespace meshard {

extern constinit const OpDef cos_op = {
    .name = "cos",
    .operands = "x",
    .doc = "The cosine of each element, in radians.",
    .example = "cos(x)",
    .infer = element_wise::infer_same<element_wise::Domain::kFloatOrComplex>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.cosine"); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = multiply(call.cotangents[0], negative(sin(call.operands[0])));
        },
    .batch = element_wise::batch,
    .samples = [](SampleSource& source) { return element_wise::unary_samples(source, cos); },
};

Tensor cos(In x) { return element_wise::unary(cos_op, element_wise::Domain::kFloatOrComplex, x); }

}  // namespace meshard
