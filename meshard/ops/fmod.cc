#include "meshard/ops/fmod.h"

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/divide.h"
#include "meshard/ops/internal/nonzero_divisor.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/negative.h"
#include "meshard/ops/rounding.h"

namespace meshard {
using namespace internal;
namespace {

std::vector<OpSample> fmod_samples(SampleSource& source) {
  auto call = [](std::span<const Tensor> x) { return fmod(x[0], x[1]); };
  // Keeps the quotients away from whole numbers, where the remainder jumps.
  HostArray off_whole = HostArray::from_vector<double>({0.5, -0.75, 1.25, 3.5}, {4});
  HostArray divisors = HostArray::from_vector<double>({1, 0.5, -1, -2}, {4});
  std::vector<OpSample> samples = element_wise::binary_samples(source, fmod, 0.5, 2.5);
  for (OpSample& sample : samples) sample.check_vjp = false;
  samples.push_back({"f64 of all signs", {off_whole, divisors}, call});
  samples.push_back(
      {"i32",
       {source.uniform(DType::i32, {4, 8}, -20, 20), source.uniform(DType::i32, {4, 8}, 1, 7)},
       call,
       false});
  return samples;
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
