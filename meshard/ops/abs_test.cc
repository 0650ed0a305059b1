#include "meshard/ops/abs.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Abs, Emits) {
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(emitted(abs(x)), "%0 = stablehlo.abs %arg0 : tensor<2x3xf32>");
}

TEST(Abs, LeavesUnsignedIntegersAlone) {
  Tensor x = from_host<std::uint8_t>({1, 2}, {2});
  EXPECT_EQ(abs(x).value(), x.value());
}

// Like jax.grad(jax.numpy.abs)(0.0).
TEST(Abs, DerivativeAtZeroIsOne) {
  Tensor y = abs(from_host<double>({0, -2, 2}, {3}));
  Tensor slope = recorded_vjp(y, from_host<double>({1, 1, 1}, {3}))[0];
  EXPECT_EQ(interpret(slope), HostArray::from_vector<double>({1, -1, 1}));
}

TEST(Abs, RefusesBools) {
  EXPECT_TRUE(throws_error([] { abs(from_host(HostArray::scalar(true))); },
                           ErrorCode::kInvalidArgument, {"[abs]", "not bool"}));
}

}  // namespace
}  // namespace meshard
