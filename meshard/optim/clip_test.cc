#include <gmock/gmock.h>

#include <cmath>

#include "meshard/optim/gradients.h"
#include "meshard/optim/optim_testutil.h"
#include "tests/support/matchers.h"

namespace meshard::optim {
namespace {

using Clipping = OnPlugin;

TEST_F(Clipping, NormIsOverAllTensors) {
  // 4 times 2^2, and 3^2 once: 25
  std::vector<Tensor> gradients{full({2, 2}, -2.0), full({1}, 3.0)};
  EXPECT_EQ(global_norm(gradients).item<float>(), 5);
  auto [clipped, norm] = clip_by_global_norm(gradients, 2.5);
  EXPECT_EQ(norm.item<float>(), 5);
  EXPECT_THAT(clipped[0].to_vector<float>(), testing::Each(-1));
  EXPECT_EQ(clipped[1].item<float>(), 1.5f);
}

TEST_F(Clipping, WhatIsWithinTheLimitStaysToTheBit) {
  TwoTensors gradients = gradients_of(1);
  auto [same, norm] = clip_by_global_norm(gradients, 1e3);
  EXPECT_EQ(numbers_of(same), numbers_of(gradients));
  EXPECT_EQ(clip_by_global_norm(full({3}, 0.0), 1).first.to_vector<float>(),
            std::vector<float>(3, 0));
}

// Clipped to 20000 * 2^-25: as an f16, the factor 2^-25 would be 0, and so would the gradients.
TEST_F(Clipping, NarrowGradientsAreScaledInF32) {
  Tensor gradients = full({1}, 20000.0, DType::f16);
  auto [clipped, norm] = clip_by_global_norm(gradients, std::ldexp(20000.0, -25));
  EXPECT_EQ(clipped.dtype(), DType::f16);
  EXPECT_EQ(astype(clipped, DType::f64).item<double>(), std::ldexp(10000.0, -24));
}

TEST_F(Clipping, LimitIsAboveZero) {
  EXPECT_TRUE(throws_error([] { clip_by_global_norm(ones({2}), 0); }, ErrorCode::kInvalidArgument,
                           {"limit must be above 0, not 0"}));
}

}  // namespace
}  // namespace meshard::optim
