#pragma once
#include "meshard/graph/tensor.h"

namespace meshard::nn {

/// Rotary position embedding (Su et al.: RoFormer, 2021). In each head the elements i and i + size
/// / 2 are rotated as a pair by the angle position * theta^(-2 i / size).
struct Rotary {
  double theta = 10000;
};

/// Applies it to x [batch, time, heads, size], with `positions` integers [time] or [batch, time].
/// Computed in f32.
/// @error invalid argument if the size is odd or the positions do not fit.
Tensor rotated(const Rotary& rotary, const Tensor& x, const Tensor& positions,
               SourceLocation where = SourceLocation::current());

}  // namespace meshard::nn
