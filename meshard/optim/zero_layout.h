// Optimizer states that are split over the devices that replicate the parameters.
#pragma once
#include <string>
#include <vector>

#include "meshard/graph/call_scope.h"
#include "meshard/graph/structure.h"
#include "meshard/optim/parameter_step.h"

namespace meshard::optim {

namespace internal {
// Without its first `stacked` dimensions.
Tensor split_further(const Tensor& parameter, const std::string& axis, std::size_t stacked);
}  // namespace internal

/// The layout of an optimizer state that is split over one more mesh axis, usually "data". It
/// consists of abstract tensors, for the last argument of init(). Each has the sharding of its
/// parameter in `params`, except that the first dimension that is not split and is a multiple of
/// the axis's size is split over `axis`; the dimension of the layers in an nn::Layers is not. If
/// there is no such dimension, or the parameter already uses the axis, the sharding is the
/// parameter's.
///
/// A step then sums gradients into parts (a reduce-scatter), computes each part where its state is,
/// and gathers the new parameters: stage 1 of ZeRO (Rajbhandari et al., 2020).
/// @error invalid argument: a parameter without a sharding; not found: a mesh without the axis.
template <class Params>
Params zero_layout(const Params& params, const std::string& axis = "data",
                   SourceLocation where = SourceLocation::current()) {
  CallScope line(where, "in optim::zero_layout");
  std::vector<Tensor> tensors = structure::tensors(params);
  std::vector<std::size_t> stacked = internal::stacked_dimensions(params);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    tensors[i] = internal::split_further(tensors[i], axis, stacked[i]);
  return structure::with_tensors(params, tensors);
}

}  // namespace meshard::optim
