#include "meshard/ops/log.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"

namespace meshard {
namespace {

TEST(Log, Emits) {
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(emitted(log(x)), R"(%0 = stablehlo.log %arg0 : tensor<2x3xf32>)");
}

TEST(Log, ComputesIntegersInF32) {
  EXPECT_EQ(log(from_host<std::int32_t>({1, 2}, {2})).type(), (TensorType{DType::f32, Shape{2}}));
}

TEST(Log, DerivativeAtAPoint) {
  Tensor y = log(from_host<double>({4}, {1}));
  Tensor slope = recorded_vjp(y, from_host<double>({1}, {1}))[0];
  EXPECT_NEAR(interpret(slope).item<double>(), 0.25, 1e-12);
}

}  // namespace
}  // namespace meshard
