#pragma once
#include <optional>

#include "meshard/graph/tensor.h"

namespace meshard::nn {

/// Dropout: zeroes each element with probability `rate` and divides the others by 1 - rate.
/// (Srivastava et al., 2014.) Without a key nothing is dropped, as for evaluation. Which elements
/// are dropped depends on the key and their position in the whole tensor, not on the mesh.
/// @error as meshard::dropout
Tensor dropout(const Tensor& x, double rate, const std::optional<Tensor>& key,
               SourceLocation where = SourceLocation::current());

}  // namespace meshard::nn
