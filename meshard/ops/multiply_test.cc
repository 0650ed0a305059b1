#include "meshard/ops/multiply.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/emitted.h"

namespace meshard {
namespace {

TEST(Multiply, Emits) {
  Tensor x = from_host<float>({1, 2}, {2}), y = from_host<float>({3, 4}, {2});
  EXPECT_EQ(emitted(multiply(x, y)), "%0 = stablehlo.multiply %arg0, %arg1 : tensor<2xf32>");
}

TEST(Multiply, OnlyWantedCotangentsAreRecorded) {
  Tensor x = from_host<float>({1, 2}, {2});
  Tensor mask = from_host<std::int32_t>({1, 0}, {2});
  Tensor product = multiply(x, mask);
  EXPECT_EQ(product.dtype(), DType::f32);
  // The integers are converted by astype.
  EXPECT_EQ(product.value()->operands()[1]->op().name, "astype");
}

}  // namespace
}  // namespace meshard
