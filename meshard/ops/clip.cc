#include "meshard/ops/clip.h"

#include <array>

#include "meshard/ops/comparison.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/definition/weak_number.h"
#include "meshard/ops/maximum.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/where.h"

namespace meshard {
namespace {

// The share of the cotangent that `chosen` receives: all of it where it is larger than `other`,
// half where they are equal, as in minimum(maximum(x, min), max).
Tensor share(const Tensor& cotangent, const Tensor& chosen, const Tensor& other) {
  Tensor half = multiply(cotangent, element_wise::literal(0.5, cotangent));
  return where(greater(chosen, other), cotangent, where(equal(chosen, other), half, 0));
}

void clip_vjp(const VjpCall& call, std::span<Tensor> out) {
  const Tensor &x = call.operands[0], &min = call.operands[1], &max = call.operands[2];
  Tensor raised = maximum(x, min);
  if (call.needs(0) || call.needs(1)) {
    Tensor below_max = share(call.cotangents[0], max, raised);
    if (call.needs(0)) out[0] = share(below_max, x, min);
    if (call.needs(1)) out[1] = share(below_max, min, x);
  }
  if (call.needs(2)) out[2] = share(call.cotangents[0], raised, max);
}

std::vector<OpSample> clip_samples(SampleSource& source) {
  auto numbers = [](std::span<const Tensor> x) { return clip(x[0], -1, 0.5); };
  auto tensors = [](std::span<const Tensor> x) { return clip(x[0], x[1], x[2]); };
  return {
      {"vector", {source.distinct(DType::f32, {8})}, numbers},
      {"matrix", {source.distinct(DType::f32, {4, 8})}, numbers},
      {"rank 3", {source.distinct(DType::f32, {4, 2, 8})}, numbers},
      {"integers",
       {source.uniform(DType::i32, {4, 8}, -9, 9)},
       [](std::span<const Tensor> x) { return clip(x[0], -3, 4); },
       false},
      {"f64", {source.distinct(DType::f64, {4, 4}, 0.3)}, numbers},
      {"f64 with tensors",
       {source.distinct(DType::f64, {4, 4}, 0.3), source.uniform(DType::f64, {4}, -1.2, -1.1),
        source.uniform(DType::f64, {}, 1.01, 1.02)},
       tensors},
  };
}

}  // namespace

extern constinit const OpDef clip_op = element_wise::define({
    .name = "clip",
    .operands = "x, min, max",
    .example = "clip(x, -1, 1)",
    .domain = DTypeDomain::kNumber,
    .mnemonic = "stablehlo.clamp",
    .emit =
        [](const OpCall&, OpEmission& out) {
          out.writer
              .op("stablehlo.clamp", {out.results[0]},
                  {out.operands[1], out.operands[0], out.operands[2]}, out.location)
              .done();
        },
    .vjp = clip_vjp,
    .samples = clip_samples,
});

Tensor clip(In x, In min, In max) {
  using element_wise::to_tensor;
  SourceLocation place = effective_source(x.where);
  DType with_min = element_wise::common_dtype(clip_op, x, min);
  // Of a weakly typed one among the three, only its kind takes part in promotion.
  std::optional<ScalarKind> kind = weak_kind(max);
  DType dtype = kind ? promote_scalar(with_min, *kind)
                     : promote(with_min, element_wise::dtype_of_operand(clip_op, max), place);
  std::array operands{to_tensor(x, dtype), to_tensor(min, dtype), to_tensor(max, dtype)};
  element_wise::broadcast_together(clip_op, operands, place);
  return record(clip_op, nullptr, {&operands[0], &operands[1], &operands[2]}, place);
}

}  // namespace meshard
