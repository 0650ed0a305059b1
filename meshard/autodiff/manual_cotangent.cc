#include "meshard/autodiff/manual_cotangent.h"

#include "meshard/ops/all_reduce.h"
#include "meshard/ops/shard_to_full.h"
#include "meshard/ops/vary.h"

namespace meshard {
namespace {

// The cotangent of `used`, given that of something that varies over the axes of `result`.
Tensor narrowed(const Value& used, const ManualAxes* result, const Tensor& gradient) {
  if (!result) return cotangent_like(used, gradient);
  const ManualAxes* place = manual_axes(used);
  if (!place && !manual_axes(gradient.value())) return gradient;  // of the way in
  AxisSet present = place ? place->varying : AxisSet(), copies = result->varying - present;
  Tensor all = widened(gradient, {result->mesh, result->axes, result->varying | present});
  if (!copies.empty()) all = all_reduce(all, copies.of(result->mesh));
  if (place) return all;
  // A free value is a full value.
  return shard_to_full(all, Sharding::replicated(result->mesh, 0), used.type().shape);
}

}  // namespace

Tensor cotangent_like(const Value& value, const Tensor& cotangent) {
  const ManualAxes* place = manual_axes(value);
  return place && cotangent.defined() ? widened(cotangent, *place) : cotangent;
}

Tensor cotangent_of_operand(const Node& node, std::size_t i, const Tensor& gradient) {
  const ManualAxes* result =
      node.annotations() && node.annotations()->manual ? &*node.annotations()->manual : nullptr;
  return narrowed(node.operands()[i], result, gradient);
}

Tensor cotangent_of_captured(const Value& inner, const Value& outer, const Tensor& cotangent) {
  return narrowed(outer, manual_axes(inner), cotangent);
}

}  // namespace meshard
