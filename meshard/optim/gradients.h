// What is done with gradients before an optimizer gets them: accumulated, clipped, scaled.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshard/graph/body_function.h"
#include "meshard/graph/record.h"
#include "meshard/graph/structure.h"
#include "meshard/graph/structure_match.h"
#include "meshard/ops/cast.h"
#include "meshard/ops/selection.h"

namespace meshard::optim {

// Gradient accumulation, for batches too large for the devices' memory.

namespace internal {
/// Slices of each tensor: slice i has the rows i, i + parts, i + 2 parts, ... so that each device
/// keeps its own rows.
std::vector<Tensor> parts_of(std::span<const Tensor> batch, std::int64_t parts);
/// The means of f's results over all slices, computed by a loop.
std::vector<Tensor> mean_over(const std::vector<Tensor>& parts, std::int64_t count,
                              const BodyFunction& f);
}  // namespace internal

/// Wraps `f` so that it processes the batch in `parts` parts, sequentially, and averages the
/// results. f(params, batch) returns `std::pair(loss, gradients)`. `batch` is a structure of
/// tensors whose dimension 0 is the samples. If the loss is a mean over samples, the result is that
/// of the whole batch, up to rounding, with the memory of one part. The parts are processed by a
/// loop, so the size of the program does not depend on their number. Floats of less than 32 bits
/// are summed in f32, and the mean has their dtype. Recording calls f twice.
///
/// @code
/// auto loss_of = [](Tensor w, Tensor x) { return mean(square(matmul(x, w))); };
/// auto in_parts = optim::accumulated(value_and_grad(loss_of), 4);
/// auto [loss, gradient] = in_parts(ones({8, 2}), ones({16, 8}));
/// gradient.shape();  // [8, 2]
/// @endcode
/// @error invalid argument: `parts` does not divide a dimension 0.
template <class F>
auto accumulated(F f, std::int64_t parts) {
  return [f = std::move(f), parts]<class Params, class Batch>(
             const Params& params, const Batch& batch,
             SourceLocation where = SourceLocation::current()) {
    using Result = std::remove_cvref_t<decltype(f(params, batch))>;
    std::optional<Result> result;
    BodyFunction of_part = [&](std::span<const Tensor> part) {
      result = f(params, structure::with_tensors(batch, part));
      return structure::tensors(*result);
    };
    std::vector<Tensor> cut;
    {
      CallScope line(where, "in optim::accumulated");  // not in f, which has lines of its own
      cut = internal::parts_of(structure::tensors(batch), parts);
    }
    std::vector<Tensor> means = internal::mean_over(cut, parts, of_part);
    return structure::with_tensors(std::move(*result), means);
  };
}

// The global norm of gradients, and clipping by it.

namespace internal {
Tensor norm_of(std::span<const Tensor> tensors);
std::vector<Tensor> scaled_to(std::span<const Tensor> tensors, const Tensor& norm, double limit);
}  // namespace internal

/// The global norm: the square root of the sum of the squares of all elements of all tensors. For
/// complex numbers it uses their absolute values. It is f32 of rank 0.
template <class T>
Tensor global_norm(const T& tensors, SourceLocation where = SourceLocation::current()) {
  CallScope line(where, "in optim::global_norm");
  return internal::norm_of(structure::tensors(tensors));
}

/// Scales the gradients by limit / norm if their global norm is above the limit. Also returns the
/// norm before scaling (Pascanu, Mikolov and Bengio, 2013). Narrow floats are multiplied in f32 and
/// rounded once.
/// @error invalid argument unless the limit is above 0.
template <class T>
std::pair<T, Tensor> clip_by_global_norm(const T& gradients, double limit,
                                         SourceLocation where = SourceLocation::current()) {
  CallScope line(where, "in optim::clip_by_global_norm");
  std::vector<Tensor> tensors = structure::tensors(gradients);
  Tensor norm = internal::norm_of(tensors);
  return {structure::with_tensors(gradients, internal::scaled_to(tensors, norm, limit)), norm};
}

// Mixed precision: 16-bit computation with 32-bit parameters, and loss scaling. The scale keeps
// small gradients from underflowing in f16 (Micikevicius et al.: Mixed Precision Training, 2018).
// bf16 has the range of f32 and does not need it.

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
