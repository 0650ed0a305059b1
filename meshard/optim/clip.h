// The global norm of gradients, and clipping by it.
#pragma once
#include <span>
#include <utility>
#include <vector>

#include "meshard/graph/call_scope.h"
#include "meshard/graph/structure.h"

namespace meshard::optim {

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

}  // namespace meshard::optim
