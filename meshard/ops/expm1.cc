#include "meshard/ops/expm1.h"

#include "meshard/ops/add.h"
#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/multiply.h"

namespace meshard {

extern constinit const OpDef expm1_op = {
    .name = "expm1",
    .operands = "x",
    .doc = "exp(x) - 1, accurate also for small elements.",
    .example = "expm1(x)",
    .infer = element_wise::infer_same<element_wise::Domain::kFloatOrComplex>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&,
               OpEmission& out) { out.element_wise("stablehlo.exponential_minus_one"); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = multiply(call.cotangents[0], add(call.results[0], 1));
        },
    .batch = element_wise::batch,
    .samples = [](SampleSource& source) { return element_wise::unary_samples(source, expm1); },
};

Tensor expm1(In x) {
  return element_wise::unary(expm1_op, element_wise::Domain::kFloatOrComplex, x);
}

}  // namespace meshard
