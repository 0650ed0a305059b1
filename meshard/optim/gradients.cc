#include "meshard/optim/gradients.h"

#include "meshard/base/error.h"
#include "meshard/graph/leaf.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/bodies.h"
#include "meshard/ops/scan.h"

namespace meshard::optim::internal {

std::vector<Tensor> parts_of(std::span<const Tensor> batch, std::int64_t parts) {
  std::vector<Tensor> out;
  for (const Tensor& tensor : batch) {
    if (tensor.rank() == 0 || parts < 1 || tensor.dim(0) % parts != 0)
      throw_invalid(tensor.where(), "[optim.accumulated] a tensor of the batch is ", tensor.type(),
                    ": dimension 0 cannot be cut into ", parts, " parts");
    Dimensions split{tensor.dim(0) / parts, parts}, order{1, 0};
    for (std::int64_t d = 1; d < tensor.rank(); ++d) {
      split.push_back(tensor.dim(d));
      order.push_back(d + 1);
    }
    out.push_back(permute_dims(reshape(tensor, split), order));
  }
  return out;
}

std::vector<Tensor> mean_over(const std::vector<Tensor>& parts, std::int64_t count,
                              const BodyFunction& f) {
  SourceLocation where = parts.empty() ? SourceLocation{} : parts[0].where();
  ScanCall call{.carries = {}, .sliced = parts, .length = count};
  // f's results, and their types in the sums. The sums are f32 for narrow floats, which stop
  // growing when a summand is less than the sum's last digit.
  std::vector<Tensor> like, sums;
  auto wide = [](const Tensor& x) {
    bool is_narrow = is_floating(x.dtype()) && size_in_bytes(x.dtype()) < 4;
    return is_narrow ? astype(x, DType::f32) : x;
  };
  scan_tensors(
      call,
      [&](std::span<const Tensor> part) {
        like = f(part);
        sums.clear();
        for (const Tensor& each : like) sums.push_back(wide(each));
        return sums;
      },
      where);
  for (const Tensor& each : sums) call.carries.push_back(zero_cotangent(each));
  std::vector<Tensor> means = scan_tensors(
      call,
      [&](std::span<const Tensor> given) {
        std::vector<Tensor> results = f(given.subspan(like.size()));
        for (std::size_t i = 0; i < results.size(); ++i) results[i] = given[i] + wide(results[i]);
        return results;
      },
      where);
  for (std::size_t i = 0; i < means.size(); ++i)
    means[i] =
        is_inexact(like[i].dtype()) ? astype(means[i] / count, like[i].dtype()) : means[i] / count;
  return means;
}

Tensor norm_of(std::span<const Tensor> tensors) {
  Tensor total = zeros({});
  for (const Tensor& tensor : tensors) {
    // The real and the imaginary parts of complex numbers both count.
    bool pairs = is_complex(tensor.dtype());
    total = total + sum(square(astype(pairs ? real(tensor) : tensor, DType::f32)));
    if (pairs) total = total + sum(square(astype(imag(tensor), DType::f32)));
  }
  return sqrt(total);
}

std::vector<Tensor> scaled_to(std::span<const Tensor> tensors, const Tensor& norm, double limit) {
  if (!(limit > 0))
    throw_invalid(SourceLocation{}, "[optim.clip_by_global_norm] the limit must be above 0, not ",
                  limit);
  Tensor factor = limit / maximum(norm, limit);
  std::vector<Tensor> out;
  // The product is f32 or wider: a narrow dtype would round the factor, f16 to 0 below 3e-8.
  for (const Tensor& tensor : tensors) out.push_back(astype(tensor * factor, tensor.dtype()));
  return out;
}

}  // namespace meshard::optim::internal

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
