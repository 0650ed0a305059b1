#include "meshard/ops/abs.h"

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/sign.h"

namespace meshard {

extern constinit const OpDef abs_op = {
    .name = "abs",
    .operands = "x",
    .doc = "The magnitude of each element.",
    .example = "abs(x)",
    .infer = element_wise::infer_same<element_wise::Domain::kSigned>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.abs"); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = multiply(call.cotangents[0], sign(call.operands[0]));
        },
    .batch = element_wise::batch,
    .samples = [](SampleSource& source) { return element_wise::unary_samples(source, abs); },
};

Tensor abs(In x) {
  if (is_unsigned_integer(element_wise::dtype_of_operand(abs_op, x))) return *x.tensor;
  return element_wise::unary(abs_op, element_wise::Domain::kSigned, x);
}

}  // namespace meshard
