#include "meshard/ops/pow.h"

#include "meshard/ops/comparison.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/log.h"
#include "meshard/ops/logical.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/subtract.h"
#include "meshard/ops/where.h"

namespace meshard {

extern constinit const OpDef pow_op = element_wise::define({
    .name = "pow",
    .operands = "a, b",
    .example = "pow(x, y)",
    .domain = DTypeDomain::kNumberOrComplex,
    .mnemonic = "stablehlo.power",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const Tensor &a = call.operands[0], &b = call.operands[1];
          if (call.needs(0)) {
            // b * a^(b-1), where 0 * 0^-1 counts as 0. (b = 0 is special only at a = 0; treating it
            // so elsewhere would lose the derivative of this expression by b.)
            Tensor pole = logical_and(equal(a, 0), equal(b, 0));
            Tensor lower = pow(a, where(pole, 1, subtract(b, 1)));
            out[0] = multiply(call.cotangents[0], where(pole, 0, multiply(b, lower)));
          }
          if (call.needs(1)) {
            // a^b * log(a), where 0 * log(0) counts as 0.
            Tensor logarithm = log(where(equal(a, 0), 1, a));
            out[1] = multiply(call.cotangents[0], multiply(call.results[0], logarithm));
          }
        },
    .samples =
        [](SampleSource& source) { return element_wise::binary_samples(source, pow, 0.5, 2); },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor pow(In a, In b) { return element_wise::binary(pow_op, a, b); }

}  // namespace meshard
