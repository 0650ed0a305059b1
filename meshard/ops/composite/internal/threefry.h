// The random number generator: Threefry-2x32 with 20 rounds (see ops/composite/random.h).
#pragma once
#include <cstdint>
#include <utility>

#include "meshard/graph/tensor.h"

namespace meshard::random::internal {

/// Two random words for the counter (x0, x1) under the key (k0, k1): tensors u32. The words of the
/// key
/// have rank 0; the words of the counter have one shape, which the results have too.
std::pair<Tensor, Tensor> encrypt(const Tensor& k0, const Tensor& k1, Tensor x0, Tensor x1);
/// The same on the host, so that no program is compiled for it.
std::pair<std::uint32_t, std::uint32_t> encrypt(std::uint32_t k0, std::uint32_t k1,
                                                std::uint32_t x0, std::uint32_t x1);

}  // namespace meshard::random::internal
