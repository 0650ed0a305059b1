#include "meshard/ops/sign.h"

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/minimum.h"

namespace meshard {

extern constinit const OpDef sign_op = {
    .name = "sign",
    .operands = "x",
    .doc = "-1, 0 or 1 for elements that are negative, zero or positive.",
    .example = "sign(x)",
    .infer = element_wise::infer_same<element_wise::Domain::kSigned>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.sign"); },
    .vjp = element_wise::zero_vjp,
    .batch = element_wise::batch,
    .samples = [](SampleSource& source) { return element_wise::unary_samples(source, sign); },
};

Tensor sign(In x) {
  // StableHLO's sign does not support unsigned integers.
  if (is_unsigned_integer(element_wise::dtype_of_operand(sign_op, x))) return minimum(x, 1);
  return element_wise::unary(sign_op, element_wise::Domain::kSigned, x);
}

}  // namespace meshard
