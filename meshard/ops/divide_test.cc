#include "meshard/ops/divide.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/emitted.h"
#include "tests/support/interpreter.h"

namespace meshard {
namespace {

TEST(Divide, Emits) {
  Tensor x = from_host<float>({1, 2}, {2}), y = from_host<float>({3, 4}, {2});
  EXPECT_EQ(emitted(divide(x, y)), "%0 = stablehlo.divide %arg0, %arg1 : tensor<2xf32>");
}

TEST(Divide, IntegersGiveF32) {
  Tensor x = from_host<std::int32_t>({1, 2}, {2});
  EXPECT_EQ(interpret(divide(x, 4)), HostArray::from_vector<float>({0.25f, 0.5f}));
}

}  // namespace
}  // namespace meshard
