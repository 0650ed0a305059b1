#include "meshard/ops/fmod.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"

namespace meshard {
namespace {

TEST(Fmod, Emits) {
  Tensor x = from_host<float>({1, 2}, {2});
  EXPECT_EQ(emitted(fmod(x, x)), "%0 = stablehlo.remainder %arg0, %arg1 : tensor<2xf32>");
}

TEST(Fmod, DerivativeAtAPoint) {
  // -7.5 = -3 * 2 - 1.5: the derivative by the divisor is 3, not 4.
  Tensor a = from_host<double>({-7.5}, {1}), b = from_host<double>({2}, {1});
  std::vector<Tensor> slopes = recorded_vjp(fmod(a, b), from_host<double>({1}, {1}));
  EXPECT_EQ(interpret(slopes[0]).item<double>(), 1);
  EXPECT_EQ(interpret(slopes[1]).item<double>(), 3);
}

}  // namespace
}  // namespace meshard
