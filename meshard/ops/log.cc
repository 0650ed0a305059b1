#include "meshard/ops/log.h"

#include "meshard/ops/divide.h"
#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"

namespace meshard {

extern constinit const OpDef log_op = {
    .name = "log",
    .operands = "x",
    .doc = "The natural logarithm of each element.",
    .example = "log(x)",
    .infer = element_wise::infer_same<element_wise::Domain::kFloatOrComplex>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.log"); },
    .vjp = [](const VjpCall& call,
              std::span<Tensor> out) { out[0] = divide(call.cotangents[0], call.operands[0]); },
    .batch = element_wise::batch,
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, log, 0.25, 3); },
};

Tensor log(In x) { return element_wise::unary(log_op, element_wise::Domain::kFloatOrComplex, x); }

}  // namespace meshard
