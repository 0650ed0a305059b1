#include "meshard/ops/fmod.h"

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/divide.h"
#include "meshard/ops/internal/division_samples.h"
#include "meshard/ops/internal/nonzero_divisor.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/negative.h"
#include "meshard/ops/rounding.h"

namespace meshard {
using namespace internal;
namespace {

std::vector<OpSample> fmod_samples(SampleSource& source) {
  return division_samples(source, fmod, /*with_unsigned=*/false);
}

}  // namespace

extern constinit const OpDef fmod_op = element_wise::define({
    .name = "fmod",
    .operands = "a, b",
    .example = "fmod(x, y)",
    .domain = DTypeDomain::kNumber,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          OpEmission::Typed divisor = nonzero_divisor(call, out);
          out.writer.elementwise("stablehlo.remainder", out.results[0].value,
                                 {out.operands[0].value, divisor.value}, call.result(),
                                 out.location);
        },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = call.cotangents[0];
          if (call.needs(1)) {
            Tensor quotient = trunc(divide(call.operands[0], call.operands[1]));
            out[1] = negative(multiply(call.cotangents[0], quotient));
          }
        },
    .samples = fmod_samples,
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor fmod(In a, In b) { return element_wise::binary(fmod_op, a, b); }

}  // namespace meshard
