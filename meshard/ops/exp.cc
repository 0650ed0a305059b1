#include "meshard/ops/exp.h"

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/multiply.h"

namespace meshard {

extern constinit const OpDef exp_op = {
    .name = "exp",
    .operands = "x",
    .doc = "e to the power of each element.",
    .example = "exp(x)",
    .infer = element_wise::infer_same<element_wise::Domain::kFloatOrComplex>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.exponential"); },
    .vjp = [](const VjpCall& call,
              std::span<Tensor> out) { out[0] = multiply(call.cotangents[0], call.results[0]); },
    .batch = element_wise::batch,
    .samples = [](SampleSource& source) { return element_wise::unary_samples(source, exp); },
};

Tensor exp(In x) { return element_wise::unary(exp_op, element_wise::Domain::kFloatOrComplex, x); }

}  // namespace meshard
