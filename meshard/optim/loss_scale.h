// Mixed precision: 16-bit computation with 32-bit parameters, and loss scaling. The scale keeps
// small gradients from underflowing in f16 (Micikevicius et al.: Mixed Precision Training, 2018).
// bf16 has the range of f32 and does not need it.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "meshard/graph/call_scope.h"
#include "meshard/graph/record.h"
#include "meshard/graph/structure_match.h"
#include "meshard/ops/cast.h"
#include "meshard/ops/selection.h"

namespace meshard::optim {

/// How the scale changes. It is multiplied by `backoff` when a gradient is not finite, but is at
/// least `least`, and by `growth` after `interval` consecutive steps with finite gradients. A
/// larger scale that f32 cannot represent is not used.
struct LossScaling {
  double first = 65536, growth = 2, backoff = 0.5, least = 1;
  std::int64_t interval = 2000;
};

/// The current scale, f32, and the number of steps for which it has been held, i32.
struct LossScale {
  Tensor scale, held;
  MESHARD_FIELDS(scale, held)
};

/// The scale before the first step.
LossScale init(const LossScaling& scaling, SourceLocation place = SourceLocation::current());

/// The scale after a step; `finite` tells whether all gradients of the step were finite.
LossScale update(const LossScaling& scaling, const LossScale& state, const Tensor& finite,
                 SourceLocation place = SourceLocation::current());

/// The loss to differentiate: multiplied by the scale, in f32. @error a complex loss.
Tensor scaled(const LossScale& state, const Tensor& loss,
              SourceLocation place = SourceLocation::current());

namespace internal {
Tensor all_finite(std::span<const Tensor> tensors);
std::vector<Tensor> divided(std::span<const Tensor> tensors, const Tensor& scale);
}  // namespace internal

/// The gradients divided by the scale, in f32 (complex ones in their dtype). Also returns whether
/// all of them are finite (a bool of rank 0).
template <class T>
std::pair<T, Tensor> unscaled(const LossScale& state, const T& gradients,
                              SourceLocation place = SourceLocation::current()) {
  CallScope line(place, "in optim::unscaled");
  std::vector<Tensor> tensors = internal::divided(structure::tensors(gradients), state.scale);
  return {structure::with_tensors(gradients, tensors), internal::all_finite(tensors)};
}

/// Selects `yes` if the condition (a bool of rank 0) is true, otherwise `no`, for each tensor. Use
/// it to skip a step whose gradients were not finite.
template <class T>
T chosen(const Tensor& condition, const T& yes, const T& no,
         SourceLocation place = SourceLocation::current()) {
  CallScope line(place, "in optim::chosen");
  std::vector<Tensor> tensors = structure::tensors(yes);
  const std::vector<Tensor> others = structure::matched_shapes(
      yes, no, {"optim.chosen", "first structure", "second structure", true}, effective_source({}));
  for (std::size_t i = 0; i < tensors.size(); ++i)
    tensors[i] = where(condition, tensors[i], others[i]);
  return structure::with_tensors(yes, tensors);
}

/// Converts the floating-point tensors of a structure to another dtype. For example f32 parameters
/// to bf16, for a model that computes in bf16; their gradients are f32 again.
template <class T>
T cast(const T& params, DType dtype, SourceLocation place = SourceLocation::current()) {
  CallScope line(place, "in optim::cast");
  std::vector<Tensor> tensors = structure::tensors(params);
  for (Tensor& tensor : tensors)
    if (is_floating(tensor.dtype())) tensor = astype(tensor, dtype);
  return structure::with_tensors(params, tensors);
}

}  // namespace meshard::optim
