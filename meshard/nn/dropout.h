#pragma once
#include <optional>

#include "meshard/graph/tensor.h"

namespace meshard::nn {

/// Each element zero with probability `rate`, else divided by 1 - rate (Srivastava et al., 2014).
/// Without a key nothing is dropped: that is how a model is evaluated. What is dropped depends on
/// the key and the place in the whole tensor, not on the mesh.
/// @error as meshard::dropout
Tensor dropout(const Tensor& x, double rate, const std::optional<Tensor>& key);

}  // namespace meshard::nn
