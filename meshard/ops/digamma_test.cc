#include "meshard/ops/digamma.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"

namespace meshard {
namespace {

TEST(Digamma, Emits) {
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(emitted(digamma(x)),
            R"(%0 = "chlo.digamma"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>)");
}

TEST(Digamma, ComputesIntegersInF32) {
  EXPECT_EQ(digamma(from_host<std::int32_t>({1, 2}, {2})).type(),
            (TensorType{DType::f32, Shape{2}}));
}

TEST(Digamma, TheDerivativeIsZetaOfTwo) {
  Tensor y = digamma(from_host<double>({2}, {1}));
  Tensor slope = recorded_vjp(y, from_host<double>({1}, {1}))[0];
  const Node* zeta = slope.value()->operands()[1].node();
  EXPECT_EQ(zeta->op().name, "zeta");
  EXPECT_EQ(interpret(Tensor(zeta->operands()[0])).to_vector<double>()[0], 2);
}

}  // namespace
}  // namespace meshard
