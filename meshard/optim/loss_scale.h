// Mixed precision: 16-bit computation with parameters of 32 bits, and a scale of the loss that
// keeps small gradients from vanishing in f16 (Micikevicius et al.: Mixed Precision Training,
// 2018). bf16 has the range of f32 and needs none.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "meshard/graph/structure.h"
#include "meshard/ops/astype.h"
#include "meshard/ops/where.h"

namespace meshard::optim {

/// How the scale changes: it is halved (`backoff`) when a gradient is not finite, and doubled
/// (`growth`) after `interval` steps in a row in which all were. A scale that f32 cannot hold is
/// not taken: it stays as it is.
struct LossScaling {
  double first = 65536, growth = 2, backoff = 0.5, least = 1;
  std::int64_t interval = 2000;
};

/// The scale now, f32, and for how many steps it has held, i32.
struct LossScale {
  Tensor scale, held;
  MESHARD_FIELDS(scale, held)
};

/// The scale before the first step.
LossScale init(const LossScaling& scaling);

/// The scale after a step whose gradients were all finite, or not.
LossScale update(const LossScaling& scaling, const LossScale& state, const Tensor& finite);

/// The loss to differentiate: times the scale, in f32. @error a complex loss.
Tensor scaled(const LossScale& state, const Tensor& loss);

namespace internal {
Tensor all_finite(std::span<const Tensor> tensors);
std::vector<Tensor> divided(std::span<const Tensor> tensors, const Tensor& scale);
}  // namespace internal

/// The gradients of the loss itself in f32 (complex ones in their dtype), and whether all of them
/// are finite (a bool of rank 0).
template <class T>
std::pair<T, Tensor> unscaled(const LossScale& state, const T& gradients) {
  std::vector<Tensor> tensors = internal::divided(structure::tensors(gradients), state.scale);
  return {structure::with_tensors(gradients, tensors), internal::all_finite(tensors)};
}

/// `yes` where the condition (a bool of rank 0) holds, else `no`, tensor by tensor: a step that is
/// taken only if its gradients were finite.
template <class T>
T chosen(const Tensor& condition, const T& yes, const T& no) {
  std::vector<Tensor> tensors = structure::tensors(yes), others = structure::tensors(no);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    tensors[i] = where(condition, tensors[i], others.at(i));
  return structure::with_tensors(yes, tensors);
}

/// The structure with its floating-point tensors in another dtype: f32 parameters as bf16, for a
/// model that computes in it. Their gradients come back in f32.
template <class T>
T cast(const T& params, DType dtype) {
  std::vector<Tensor> tensors = structure::tensors(params);
  for (Tensor& tensor : tensors)
    if (is_floating(tensor.dtype())) tensor = astype(tensor, dtype);
  return structure::with_tensors(params, tensors);
}

}  // namespace meshard::optim
