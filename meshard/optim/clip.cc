#include "meshard/optim/clip.h"

#include "meshard/base/error.h"
#include "meshard/ops/all.h"

namespace meshard::optim::internal {

Tensor norm_of(std::span<const Tensor> tensors) {
  Tensor total = zeros({});
  for (const Tensor& tensor : tensors) total = total + sum(square(astype(tensor, DType::f32)));
  return sqrt(total);
}

std::vector<Tensor> scaled_to(std::span<const Tensor> tensors, const Tensor& norm, double limit) {
  if (!(limit > 0))
    throw_invalid(SourceLocation{}, "[optim.clip_by_global_norm] the limit is ", limit,
                  ", not above 0");
  Tensor factor = limit / maximum(norm, limit);
  std::vector<Tensor> out;
  for (const Tensor& tensor : tensors) out.push_back(tensor * astype(factor, tensor.dtype()));
  return out;
}

}  // namespace meshard::optim::internal
