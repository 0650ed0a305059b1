#include "meshard/ops/logistic.h"

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/subtract.h"

namespace meshard {

extern constinit const OpDef logistic_op = {
    .name = "logistic",
    .operands = "x",
    .doc = "1 / (1 + exp(-x)) of each element, also known as sigmoid.",
    .example = "logistic(x)",
    .infer = element_wise::infer_same<element_wise::Domain::kFloatOrComplex>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.logistic"); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          Tensor slope = multiply(call.results[0], subtract(1, call.results[0]));
          out[0] = multiply(call.cotangents[0], slope);
        },
    .batch = element_wise::batch,
    .samples = [](SampleSource& source) { return element_wise::unary_samples(source, logistic); },
};

Tensor logistic(In x) {
  return element_wise::unary(logistic_op, element_wise::Domain::kFloatOrComplex, x);
}

}  // namespace meshard
