#pragma once
#include "meshard/graph/tensor.h"

namespace meshard::nn {

/// Rotary positions (Su et al.: RoFormer, 2021): in each head the pair of elements i and i + size /
/// 2 is turned by the angle position * theta^(-2 i / size).
struct Rotary {
  double theta = 10000;
};

/// x [batch, time, heads, size], with `positions` integers [time] or [batch, time]. Computed in
/// f32.
/// @error invalid argument if the size is odd or the positions do not fit.
Tensor rotated(const Rotary& rotary, const Tensor& x, const Tensor& positions);

}  // namespace meshard::nn
