#include "meshard/autodiff/manual_cotangent.h"

#include "meshard/ops/all_reduce.h"
#include "meshard/ops/shard_to_full.h"
#include "meshard/ops/vary.h"

namespace meshard {

Tensor cotangent_like(const Value& value, const Tensor& cotangent) {
  const ManualAxes* place = manual_axes(value);
  return place && cotangent.defined() ? widened(cotangent, *place) : cotangent;
}

Tensor cotangent_of_operand(const Node& node, std::size_t i, const Tensor& gradient) {
  const Value& operand = node.operands()[i];
  const ManualAxes* result =
      node.annotations() && node.annotations()->manual ? &*node.annotations()->manual : nullptr;
  if (!result) return cotangent_like(operand, gradient);
  const ManualAxes* place = manual_axes(operand);
  if (!place && !manual_axes(gradient.value())) return gradient;  // of the way in
  AxisSet present = place ? place->varying : AxisSet(), copies = result->varying - present;
  Tensor all = widened(gradient, {result->mesh, result->axes, result->varying | present});
  if (!copies.empty()) all = all_reduce(all, copies.of(result->mesh));
  if (place) return all;
  // A free operand is a full value.
  return shard_to_full(all, Sharding::replicated(result->mesh, 0), operand.type().shape);
}

}  // namespace meshard
