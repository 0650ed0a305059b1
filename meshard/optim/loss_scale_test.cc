#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "meshard/autodiff/grad.h"
#include "meshard/optim/gradients.h"
#include "meshard/optim/optim_testutil.h"

namespace meshard::optim {
namespace {

using LossScales = OnPlugin;

TEST_F(LossScales, GrowsAfterGoodStepsAndShrinksAfterABadOne) {
  LossScaling scaling{.first = 8, .interval = 2};
  LossScale state = init(scaling);
  std::vector<float> scales;
  for (bool finite :
       {true, true, true, false, true, true, false, false, false, false, false, false})
    scales.push_back((state = update(scaling, state, full({}, finite))).scale.item<float>());
  EXPECT_THAT(scales, testing::ElementsAre(8, 16, 16, 8, 8, 16, 8, 4, 2, 1, 1, 1));
}

TEST_F(LossScales, NeverGrowToInfinity) {
  float large = std::ldexp(1.0f, 127);  // twice this overflows f32
  LossScaling scaling{.first = large, .interval = 1};
  LossScale state = update(scaling, init(scaling), full({}, true));
  EXPECT_EQ(state.scale.item<float>(), large);
  EXPECT_EQ(update(scaling, state, full({}, false)).scale.item<float>(), large / 2);
}

TEST_F(LossScales, SmallGradientsSurviveInF16) {
  // The derivative of 1e-5 * 1e-5 * x in f16: 1e-10 is below the smallest f16.
  auto loss = [](const Tensor& x) {
    Tensor small = full({}, 1e-5, DType::f16);
    return sum(x * small * small);
  };
  LossScale state = init(LossScaling{.first = 32768});
  auto scaled_loss = [&](const Tensor& x) { return scaled(state, loss(cast(x, DType::f16))); };
  Tensor x = ones({4});
  EXPECT_EQ(grad([&](const Tensor& y) { return astype(loss(cast(y, DType::f16)), DType::f32); })(x)
                .to_vector<float>(),
            std::vector<float>(4, 0));
  auto [gradient, finite] = unscaled(state, grad(scaled_loss)(x));
  EXPECT_TRUE(finite.item<bool>());
  // 32768 * 1e-5 = 0.33, then 3.3e-6, which is about 55 times the smallest f16, 2^-24.
  EXPECT_THAT(gradient.to_vector<float>(), testing::Each(testing::FloatNear(1e-10f, 2e-12f)));
}

TEST_F(LossScales, AStepWithInfiniteGradientsIsNotTaken) {
  TwoTensors before = gradients_of(1), after = gradients_of(2), bad = gradients_of(3);
  bad.bias = bad.bias * std::numeric_limits<float>::infinity();
  LossScale state = init(LossScaling{.first = 1});
  Tensor finite = unscaled(state, bad).second;
  EXPECT_FALSE(finite.item<bool>());
  EXPECT_EQ(numbers_of(chosen(finite, after, before)), numbers_of(before));
  EXPECT_EQ(numbers_of(chosen(unscaled(state, before).second, after, before)), numbers_of(after));
}

}  // namespace
}  // namespace meshard::optim
