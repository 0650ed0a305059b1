#include "meshard/autodiff/manual_cotangent.h"

#include "meshard/graph/record.h"
#include "meshard/ops/all.h"

namespace meshard {
namespace {

// The cotangent of `used`, given the cotangent of a value that varies over the axes of `result`.
Tensor narrowed(const Value& used, const ManualAxes* result, const Tensor& gradient) {
  std::size_t depth = manual_depth(used), result_depth = result ? result->depth() : 0;
  // Ops that enter or leave a region return the cotangent in the region of the operand already.
  if (depth > result_depth || result_depth == 0) return cotangent_like(used, gradient);
  if (depth < result_depth && manual_depth(gradient.value()) == depth)
    return cotangent_like(used, gradient);
  internal::ManualScope scope(*result);
  const ManualAxes* place = manual_axes(used);
  AxisSet present = place ? place->varying : AxisSet(), copies = result->varying - present;
  Tensor all = widened(gradient, result->with_varying(result->varying | present));
  if (!copies.empty()) all = all_reduce(all, copies.of(result->mesh));
  // The operand is a value of an enclosing region, or a full value, that was used directly.
  for (std::size_t d = result_depth; d > depth; --d) {
    auto rank = static_cast<std::size_t>(used.type().rank());
    all = shard_to_full(all, Sharding::replicated(result->mesh, rank), used.type().shape);
  }
  return all;
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
