#include "meshard/ops/lgamma.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"

namespace meshard {
namespace {

TEST(Lgamma, Emits) {
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(emitted(lgamma(x)),
            R"(%0 = "chlo.lgamma"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>)");
}

TEST(Lgamma, ComputesIntegersInF32) {
  EXPECT_EQ(lgamma(from_host<std::int32_t>({1, 2}, {2})).type(),
            (TensorType{DType::f32, Shape{2}}));
}

TEST(Lgamma, TheDerivativeIsDigamma) {
  Tensor y = lgamma(from_host<double>({2}, {1}));
  Tensor slope = recorded_vjp(y, from_host<double>({1}, {1}))[0];
  EXPECT_EQ(slope.value()->operands()[1]->op().name, "digamma");
}

}  // namespace
}  // namespace meshard
