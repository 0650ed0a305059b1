#include "meshard/ops/atan.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"

namespace meshard {
namespace {

TEST(Atan, Emits) {
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(emitted(atan(x)), R"(%0 = "chlo.atan"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>)");
}

TEST(Atan, ComputesIntegersInF32) {
  EXPECT_EQ(atan(from_host<std::int32_t>({1, 2}, {2})).type(), (TensorType{DType::f32, Shape{2}}));
}

TEST(Atan, DerivativeAtAPoint) {
  // 1 / (1 + 4)
  Tensor y = atan(from_host<double>({2}, {1}));
  Tensor slope = recorded_vjp(y, from_host<double>({1}, {1}))[0];
  EXPECT_NEAR(interpret(slope).item<double>(), 0.2, 1e-12);
}

}  // namespace
}  // namespace meshard
