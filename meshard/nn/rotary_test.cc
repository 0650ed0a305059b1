#include <cmath>

#include "meshard/nn/attention.h"
#include "meshard/nn/nn_testutil.h"
#include "tests/support/matchers.h"

namespace meshard::nn {
namespace {

using RotaryPositions = OnPlugin;

TEST_F(RotaryPositions, TurnPairsByTheirAngles) {
  Tensor x = varied({1, 3, 2, 4});
  Numbers in(x);
  std::vector<double> expected;
  for (int t = 0; t < 3; ++t)
    for (int h = 0; h < 2; ++h)
      for (int i = 0; i < 4; ++i) {
        double angle = t * 2 * std::pow(100, -2.0 * (i % 2) / 4);  // position 2 t
        double a = in({0, t, h, i % 2}), b = in({0, t, h, i % 2 + 2});
        expected.push_back(i < 2 ? a * std::cos(angle) - b * std::sin(angle)
                                 : a * std::sin(angle) + b * std::cos(angle));
      }
  Tensor positions = from_host(std::vector<std::int32_t>{0, 2, 4}, {3});
  expect_near(rotated({.theta = 100}, x, positions), expected);
  expect_near(rotated({.theta = 100}, x, reshape(positions, {1, 3})), expected);
}

TEST_F(RotaryPositions, ProductsDependOnDistancesAlone) {
  Tensor q = varied({1, 1, 1, 8}), k = varied({1, 1, 1, 8}, 1, 4);
  auto product = [&](int at, int other) {
    return sum(rotated({}, q, full({1}, at)) * rotated({}, k, full({1}, other))).item<float>();
  };
  EXPECT_NEAR(product(3, 1), product(12, 10), 1e-5);
  EXPECT_GT(std::abs(product(3, 1) - product(3, 2)), 1e-3);
}

TEST_F(RotaryPositions, NeedPairs) {
  EXPECT_TRUE(throws_error(
      [] {
        rotated({}, ones({1, 2, 1, 3}), arange(2));
      },
      ErrorCode::kInvalidArgument, {"an even size", "f32[1,2,1,3]"}));
  EXPECT_TRUE(throws_error(
      [] {
        rotated({}, ones({1, 2, 1, 4}), arange(3));
      },
      ErrorCode::kInvalidArgument, {"i32[3]"}));
}

}  // namespace
}  // namespace meshard::nn
