#include "meshard/optim/optimizers.h"

#include <gmock/gmock.h>

#include <cmath>

#include "meshard/optim/optim_testutil.h"
#include "tests/support/matchers.h"

namespace meshard::optim {
namespace {

using SgdSteps = OnPlugin;

TwoTensors start_of_sgd() { return two_tensors({1, 2, 3, 4, -1, -2, -3, -4}, {0.5f, -0.5f}); }

std::vector<double> sgd_in_double(const Sgd& o, double rate, int steps, std::size_t decayed) {
  std::vector<double> p = numbers_of(start_of_sgd()), v(p.size());
  for (int k = 1; k <= steps; ++k) {
    std::vector<double> g = numbers_of(gradients_of(k));
    for (std::size_t i = 0; i < p.size(); ++i) {
      if (i < decayed) g[i] += o.weight_decay * p[i];
      v[i] = o.momentum * v[i] + g[i];
      p[i] -= rate * (o.nesterov ? g[i] + o.momentum * v[i] : v[i]);
    }
  }
  return p;
}

std::vector<double> sgd_on_devices(const Sgd& sgd, int steps) {
  TwoTensors params = start_of_sgd();
  SgdState<TwoTensors> state = init(sgd, params);
  for (int k = 1; k <= steps; ++k)
    std::tie(params, state) = update(sgd, params, gradients_of(k), state);
  return numbers_of(params);
}

TEST_F(SgdSteps, AreThoseOfTheFormula) {
  for (const Sgd& sgd : {Sgd{.rate = 0.1}, Sgd{.rate = 0.1, .momentum = 0.75},
                         Sgd{.rate = 0.1, .momentum = 0.75, .nesterov = true},
                         Sgd{.rate = 0.1, .momentum = 0.5, .weight_decay = 0.25, .decay_rank = 2}})
    EXPECT_THAT(sgd_on_devices(sgd, 5),
                testing::Pointwise(testing::DoubleNear(2e-6), sgd_in_double(sgd, 0.1, 5, 8)));
}

TEST_F(SgdSteps, FollowTheScheduleOfTheRate) {
  Sgd sgd{.rate = piecewise({{0, 1.0}, {1, 0.0}})};
  EXPECT_EQ(sgd_on_devices(sgd, 1), sgd_on_devices(sgd, 3));
}

// A gradient of -(1 + 2^-10) plus a decay of 1 for a parameter of 1 leaves -2^-10. Rounded to bf16,
// which has 8 bits, the gradient would be -1 and nothing would be left.
TEST_F(SgdSteps, OfNarrowParametersAreComputedInF32) {
  Sgd sgd{.rate = 8, .weight_decay = 1};
  Tensor parameter = ones({1}, DType::bf16), gradient = full({1}, -1 - std::ldexp(1.0, -10));
  Tensor after = update(sgd, parameter, gradient, init(sgd, parameter)).first;
  EXPECT_EQ(after.dtype(), DType::bf16);
  EXPECT_EQ(astype(after, DType::f32).item<float>(), 1 + std::ldexp(1.0f, -7));
}

TEST_F(SgdSteps, RefuseAStateOfAnotherMomentum) {
  TwoTensors params = start_of_sgd();
  SgdState<TwoTensors> still = init(Sgd{}, params);
  EXPECT_FALSE(still.velocity);
  EXPECT_TRUE(throws_error([&] { update(Sgd{.momentum = 0.5}, params, params, still); },
                           ErrorCode::kInvalidArgument, {"0 velocities"}));
}

}  // namespace
}  // namespace meshard::optim
