#include "meshard/ops/zeta.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Zeta, Emits) {
  Tensor x = from_host<float>({1, 2}, {2});
  EXPECT_EQ(emitted(zeta(x, x)),
            R"(%0 = "chlo.zeta"(%arg0, %arg1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>)");
}

TEST(Zeta, BroadcastsAndComputesIntegersInF32) {
  Tensor whole = from_host<std::int32_t>({1, 2}, {2, 1});
  EXPECT_EQ(zeta(1, whole).type(), (TensorType{DType::f32, Shape{2, 1}}));
  EXPECT_EQ(zeta(whole, from_host<double>({1, 2}, {2})).type(),
            (TensorType{DType::f64, Shape{2, 2}}));
}

TEST(Zeta, ThereIsNoDerivativeWithRespectToTheExponent) {
  Tensor x = from_host<double>({2}, {1});
  EXPECT_TRUE(throws_error([&] { recorded_vjp(zeta(x, x), x); }, ErrorCode::kInvalidArgument,
                           {"zeta_test.cc:", "[zeta]", "respect to s"}));
}

}  // namespace
}  // namespace meshard
