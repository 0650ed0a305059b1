#include "meshard/ops/rsqrt.h"

#include "meshard/ops/divide.h"
#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/multiply.h"

namespace meshard {

extern constinit const OpDef rsqrt_op = {
    .name = "rsqrt",
    .operands = "x",
    .doc = "One over the square root of each element.",
    .example = "rsqrt(x)",
    .infer = element_wise::infer_same<element_wise::Domain::kFloatOrComplex>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.rsqrt"); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          // y = x^(-1/2), so dy/dx = -y / 2x.
          Tensor half = element_wise::literal(-0.5, call.results[0]);
          out[0] = multiply(call.cotangents[0],
                            multiply(half, divide(call.results[0], call.operands[0])));
        },
    .batch = element_wise::batch,
    .samples =
        [](SampleSource& source) { return element_wise::unary_samples(source, rsqrt, 0.25, 3); },
};

Tensor rsqrt(In x) {
  return element_wise::unary(rsqrt_op, element_wise::Domain::kFloatOrComplex, x);
}

}  // namespace meshard
