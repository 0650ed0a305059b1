#include "meshard/ops/add.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/emitted.h"

namespace meshard {
namespace {

TEST(Add, Emits) {
  Tensor x = from_host<float>({1, 2}, {2}), y = from_host<float>({3, 4}, {2});
  EXPECT_EQ(emitted(add(x, y)), "%0 = stablehlo.add %arg0, %arg1 : tensor<2xf32>");
}

TEST(Add, OfEqualTypesRecordsOneNode) {
  Tensor x = from_host<float>({1, 2}, {2}), y = from_host<float>({3, 4}, {2});
  Tensor sum = add(x, y);
  EXPECT_EQ(sum.value()->operands()[0], x.value());
  EXPECT_EQ(sum.value()->operands()[1], y.value());
}

}  // namespace
}  // namespace meshard
