#include "meshard/ops/atan2.h"

#include "meshard/ops/add.h"
#include "meshard/ops/divide.h"
#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/negative.h"

namespace meshard {

extern constinit const OpDef atan2_op = {
    .name = "atan2",
    .operands = "a, b",
    .doc = "The angle in radians of the point with y coordinate a and x coordinate b.",
    .example = "atan2(x, y)",
    .infer = element_wise::infer_same<element_wise::Domain::kFloat>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.atan2"); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const Tensor &a = call.operands[0], &b = call.operands[1];
          // Divides before multiplying by the cotangent: where the squares overflow, the quotients
          // are 0.
          Tensor square = add(multiply(a, a), multiply(b, b));
          if (call.needs(0)) out[0] = multiply(call.cotangents[0], divide(b, square));
          if (call.needs(1)) out[1] = negative(multiply(call.cotangents[0], divide(a, square)));
        },
    .batch = element_wise::batch,
    .samples =
        [](SampleSource& source) { return element_wise::binary_samples(source, atan2, 0.25, 2); },
};

Tensor atan2(In a, In b) {
  return element_wise::binary(atan2_op, element_wise::Domain::kFloat, a, b);
}

}  // namespace meshard
