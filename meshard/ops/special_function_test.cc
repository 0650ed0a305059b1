#include "meshard/ops/special_function.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Digamma, TheDerivativeIsZetaOfTwo) {
  Tensor y = digamma(from_host<double>({2}, {1}));
  Tensor slope = recorded_vjp(y, from_host<double>({1}, {1}))[0];
  const Node* zeta = slope.value()->operands()[1].node();
  EXPECT_EQ(zeta->op().name, "zeta");
  EXPECT_EQ(interpret(Tensor(zeta->operands()[0])).to_vector<double>()[0], 2);
}

TEST(Polygamma, ThereIsNoDerivativeWithRespectToTheOrder) {
  Tensor x = from_host<double>({2}, {1});
  EXPECT_TRUE(throws_error([&] { recorded_vjp(polygamma(x, x), x); }, ErrorCode::kInvalidArgument,
                           {"special_function_test.cc:", "[polygamma]", "the order"}));
}

TEST(Zeta, ThereIsNoDerivativeWithRespectToTheExponent) {
  Tensor x = from_host<double>({2}, {1});
  EXPECT_TRUE(throws_error([&] { recorded_vjp(zeta(x, x), x); }, ErrorCode::kInvalidArgument,
                           {"special_function_test.cc:", "[zeta]", "respect to s"}));
}

}  // namespace
}  // namespace meshard
