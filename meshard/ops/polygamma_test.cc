#include "meshard/ops/polygamma.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Polygamma, Emits) {
  Tensor x = from_host<float>({1, 2}, {2});
  EXPECT_EQ(
      emitted(polygamma(x, x)),
      R"(%0 = "chlo.polygamma"(%arg0, %arg1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>)");
}

TEST(Polygamma, BroadcastsAndComputesIntegersInF32) {
  Tensor whole = from_host<std::int32_t>({1, 2}, {2, 1});
  EXPECT_EQ(polygamma(1, whole).type(), (TensorType{DType::f32, Shape{2, 1}}));
  EXPECT_EQ(polygamma(whole, from_host<double>({1, 2}, {2})).type(),
            (TensorType{DType::f64, Shape{2, 2}}));
}

TEST(Polygamma, ThereIsNoDerivativeWithRespectToTheOrder) {
  Tensor x = from_host<double>({2}, {1});
  EXPECT_TRUE(throws_error([&] { recorded_vjp(polygamma(x, x), x); }, ErrorCode::kInvalidArgument,
                           {"polygamma_test.cc:", "[polygamma]", "the order"}));
}

}  // namespace
}  // namespace meshard
