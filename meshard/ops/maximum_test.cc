#include "meshard/ops/maximum.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"

namespace meshard {
namespace {

TEST(Maximum, Emits) {
  Tensor x = from_host<float>({1, 2}, {2}), y = from_host<float>({3, 4}, {2});
  EXPECT_EQ(emitted(maximum(x, y)), "%0 = stablehlo.maximum %arg0, %arg1 : tensor<2xf32>");
}

TEST(Maximum, EqualElementsShareTheCotangent) {
  Tensor result = maximum(from_host<double>({1, 2, 3}, {3}), from_host<double>({2, 2, 2}, {3}));
  std::vector<Tensor> slopes = recorded_vjp(result, from_host<double>({1, 1, 1}, {3}));
  EXPECT_EQ(interpret(slopes[0]), HostArray::from_vector<double>({0, 0.5, 1}));
  EXPECT_EQ(interpret(slopes[1]), HostArray::from_vector<double>({1, 0.5, 0}));
}

}  // namespace
}  // namespace meshard
