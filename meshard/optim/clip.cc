#include "meshard/optim/clip.h"

#include "meshard/base/error.h"
#include "meshard/ops/all.h"

namespace meshard::optim::internal {

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
