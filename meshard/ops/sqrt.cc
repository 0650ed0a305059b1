#include "meshard/ops/sqrt.h"

#include "meshard/ops/divide.h"
#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/multiply.h"

namespace meshard {

extern constinit const OpDef sqrt_op = {
    .name = "sqrt",
    .operands = "x",
    .doc = "The square root of each element.",
    .example = "sqrt(x)",
    .infer = element_wise::infer_same<element_wise::Domain::kFloatOrComplex>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.sqrt"); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          Tensor half = element_wise::literal(0.5, call.results[0]);
          out[0] = multiply(call.cotangents[0], divide(half, call.results[0]));
        },
    .batch = element_wise::batch,
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, sqrt, 0.25, 3); },
};

Tensor sqrt(In x) { return element_wise::unary(sqrt_op, element_wise::Domain::kFloatOrComplex, x); }

}  // namespace meshard
