#include "meshard/ops/asinh.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"

namespace meshard {
namespace {

TEST(Asinh, Emits) {
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(emitted(asinh(x)),
            R"(%0 = "chlo.asinh"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>)");
}

TEST(Asinh, ComputesIntegersInF32) {
  EXPECT_EQ(asinh(from_host<std::int32_t>({1, 2}, {2})).type(), (TensorType{DType::f32, Shape{2}}));
}

TEST(Asinh, DerivativeAtAPoint) {
  // 1 / sqrt(1 + 9 / 16)
  Tensor y = asinh(from_host<double>({0.75}, {1}));
  Tensor slope = recorded_vjp(y, from_host<double>({1}, {1}))[0];
  EXPECT_NEAR(interpret(slope).item<double>(), 0.8, 1e-12);
}

}  // namespace
}  // namespace meshard
