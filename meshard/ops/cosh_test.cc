#include "meshard/ops/cosh.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"

namespace meshard {
namespace {

TEST(Cosh, Emits) {
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(emitted(cosh(x)), R"(%0 = "chlo.cosh"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>)");
}

TEST(Cosh, ComputesIntegersInF32) {
  EXPECT_EQ(cosh(from_host<std::int32_t>({1, 2}, {2})).type(), (TensorType{DType::f32, Shape{2}}));
}

TEST(Cosh, DerivativeAtAPoint) {
  // sinh(1)
  Tensor y = cosh(from_host<double>({1}, {1}));
  Tensor slope = recorded_vjp(y, from_host<double>({1}, {1}))[0];
  EXPECT_NEAR(interpret(slope).item<double>(), 1.1752011936438014, 1e-12);
}

}  // namespace
}  // namespace meshard
