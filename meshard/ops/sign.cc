#include "meshard/ops/sign.h"

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/minimum.h"

namespace meshard {

extern constinit const OpDef sign_op = element_wise::define({
    .name = "sign",
    .operands = "x",
    .example = "sign(x)",
    .domain = DTypeDomain::kSigned,
    .mnemonic = "stablehlo.sign",
    .vjp = element_wise::zero_vjp,
    .samples = [](SampleSource& source) { return element_wise::unary_samples(source, sign); },
});

Tensor sign(In x) {
  // StableHLO's sign does not support unsigned integers.
  if (is_unsigned_integer(element_wise::dtype_of_operand(sign_op, x))) return minimum(x, 1);
  return element_wise::unary(sign_op, x);
}

}  // namespace meshard
