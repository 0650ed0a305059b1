#include "meshard/ops/selection.h"

#include <array>

#include "meshard/graph/explicit_sharding.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"

namespace meshard {
namespace {

void infer_where(const OpCall& call, ResultTypes& results) {
  const TensorType &condition = call.operand(0), &a = call.operand(1), &b = call.operand(2);
  if (condition.dtype != DType::bool_)
    call.fail("the condition must be of bools, not ", condition.dtype,
              ": compare first, as in not_equal(x, 0)");
  if (a != b) call.fail("types to choose from differ: ", a, " and ", b);
  if (condition.shape != a.shape) call.fail("shapes differ: condition ", condition, ", values ", a);
  results.push_back(a);
}

void where_vjp(const VjpCall& call, std::span<Tensor> out) {
  const Tensor& condition = call.operands[0];
  if (call.needs(1)) out[1] = where(condition, call.cotangents[0], 0);
  if (call.needs(2)) out[2] = where(condition, 0, call.cotangents[0]);
}

}  // namespace

extern constinit const OpDef where_op = element_wise::define({
    .name = "where",
    .operands = "condition, a, b",
    .doc = "The first value where the condition is true, the second elsewhere.",
    .example = "where(less(x, y), x, 0)",
    .infer = infer_where,
    .mnemonic = "stablehlo.select",
    .emit = [](const OpCall&, OpEmission& out) { out.op("stablehlo.select").done(); },
    .vjp = where_vjp,
    .sharding_conflict = [](const OpCall&, std::span<const Sharding* const> operands)
        -> std::string { return unlike_operands(operands, 1); },
});

Tensor where(In condition, In a, In b) {
  SourceLocation place = effective_source(condition.where);
  DType dtype = element_wise::common_dtype(where_op, a, b);
  DType condition_dtype = element_wise::dtype_of_operand(where_op, condition);
  std::array operands{element_wise::to_tensor(condition, condition_dtype),
                      element_wise::to_tensor(a, dtype), element_wise::to_tensor(b, dtype)};
  element_wise::broadcast_together(where_op, operands, place);
  return record(where_op, nullptr, {&operands[0], &operands[1], &operands[2]}, place);
}

extern constinit const OpDef maximum_op = element_wise::define({
    .name = "maximum",
    .operands = "a, b",
    .example = "maximum(x, y)",
    .domain = DTypeDomain::kNumber,
    .mnemonic = "stablehlo.maximum",
    .vjp = element_wise::chosen_vjp,
});

Tensor maximum(In a, In b) { return element_wise::binary(maximum_op, a, b); }

extern constinit const OpDef minimum_op = element_wise::define({
    .name = "minimum",
    .operands = "a, b",
    .example = "minimum(x, y)",
    .domain = DTypeDomain::kNumber,
    .mnemonic = "stablehlo.minimum",
    .vjp = element_wise::chosen_vjp,
});

Tensor minimum(In a, In b) { return element_wise::binary(minimum_op, a, b); }

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
