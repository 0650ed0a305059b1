#include "meshard/ops/divide.h"

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/negative.h"

namespace meshard {

extern constinit const OpDef divide_op = {
    .name = "divide",
    .operands = "a, b",
    .doc = "The quotient of each pair of elements, in floating point.",
    .example = "divide(x, y)",
    .infer = element_wise::infer_same<element_wise::Domain::kFloatOrComplex>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.divide"); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          Tensor scaled = divide(call.cotangents[0], call.operands[1]);
          out[0] = scaled;
          if (call.needs(1)) out[1] = negative(multiply(scaled, call.results[0]));
        },
    .batch = element_wise::batch,
    .samples =
        [](SampleSource& source) { return element_wise::binary_samples(source, divide, 0.5, 2.5); },
};

Tensor divide(In a, In b) {
  return element_wise::binary(divide_op, element_wise::Domain::kFloatOrComplex, a, b);
}

}  // namespace meshard
