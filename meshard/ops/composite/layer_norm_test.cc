#include "meshard/ops/composite/layer_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "meshard/ops/op_testutil.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(LayerNorm, OfKnownNumbers) {
  // Mean 2 and variance 1 in each row: without epsilon, -1 and 1.
  Tensor x = from_host<double>({1, 3, 3, 1}, {2, 2});
  Tensor y = layer_norm(x, from_host<double>({2, 3}, {2}), 1.0, 0.0);
  EXPECT_EQ(interpret(y), HostArray::from_vector<double>({-1, 4, 3, -2}, {2, 2}));
  EXPECT_NEAR(interpret(layer_norm(x)).at<double>({0, 1}), 1 / std::sqrt(1 + 1e-5), 1e-12);
}

TEST(LayerNorm, KeepsTheDtype) {
  EXPECT_EQ(layer_norm(input({4, 8}, DType::bf16), input({8}), input({8})).dtype(), DType::bf16);
}

}  // namespace
}  // namespace meshard
