#include "meshard/optim/loss_scale.h"

#include "meshard/base/error.h"
#include "meshard/graph/call_scope.h"
#include "meshard/graph/leaf.h"
#include "meshard/ops/all.h"

namespace meshard::optim {

LossScale init(const LossScaling& scaling, SourceLocation place) {
  CallScope line(place, "in optim::init");
  return {from_host(HostArray::scalar(static_cast<float>(scaling.first))),
          from_host(HostArray::scalar(std::int32_t{0}))};
}

LossScale update(const LossScaling& scaling, const LossScale& state, const Tensor& finite,
                 SourceLocation place) {
  CallScope line(place, "in optim::update");
  Tensor held = where(finite, state.held + 1, 0);
  Tensor grows = held >= scaling.interval;
  Tensor smaller = maximum(state.scale * scaling.backoff, scaling.least);
  // An infinite scale would never recover: half of it is still infinite, and no gradient is finite.
  Tensor larger = state.scale * scaling.growth;
  larger = where(isfinite(larger), larger, state.scale);
  Tensor scale = where(finite, where(grows, larger, state.scale), smaller);
  return {scale, where(grows, 0, held)};
}

Tensor scaled(const LossScale& state, const Tensor& loss, SourceLocation place) {
  CallScope line(place, "in optim::scaled");
  if (is_complex(loss.dtype()))
    throw_invalid(loss.where(), "[optim.scaled] a loss must be a real number, not ", loss.type());
  return astype(loss, DType::f32) * state.scale;
}

namespace internal {

Tensor all_finite(std::span<const Tensor> tensors) {
  Tensor finite = full({}, true);
  for (const Tensor& tensor : tensors) finite = logical_and(finite, all(isfinite(tensor)));
  return finite;
}

std::vector<Tensor> divided(std::span<const Tensor> tensors, const Tensor& scale) {
  std::vector<Tensor> out;
  for (const Tensor& tensor : tensors)
    out.push_back((is_complex(tensor.dtype()) ? tensor : astype(tensor, DType::f32)) / scale);
  return out;
}

}  // namespace internal
}  // namespace meshard::optim
