#include "meshard/ops/negative.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"

namespace meshard {
namespace {

TEST(Negative, Emits) {
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(emitted(negative(x)), "%0 = stablehlo.negate %arg0 : tensor<2x3xf32>");
}

TEST(Negative, KeepsIntegers) {
  EXPECT_EQ(negative(from_host<std::uint8_t>({1, 2}, {2})).dtype(), DType::u8);
}

TEST(Negative, DerivativeAtAPoint) {
  Tensor y = negative(from_host<double>({5}, {1}));
  Tensor slope = recorded_vjp(y, from_host<double>({1}, {1}))[0];
  EXPECT_NEAR(interpret(slope).item<double>(), -1, 1e-12);
}

}  // namespace
}  // namespace meshard
