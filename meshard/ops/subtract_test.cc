#include "meshard/ops/subtract.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/emitted.h"
#include "tests/support/interpreter.h"

namespace meshard {
namespace {

TEST(Subtract, Emits) {
  Tensor x = from_host<float>({1, 2}, {2}), y = from_host<float>({3, 4}, {2});
  EXPECT_EQ(emitted(subtract(x, y)), "%0 = stablehlo.subtract %arg0, %arg1 : tensor<2xf32>");
}

TEST(Subtract, TakesANumberOnTheLeft) {
  Tensor x = from_host<float>({1, 2}, {2});
  EXPECT_EQ(interpret(subtract(1, x)), HostArray::from_vector<float>({0, -1}));
}

}  // namespace
}  // namespace meshard
