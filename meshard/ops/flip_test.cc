#include "meshard/ops/flip.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Flip, EmitsAndRule) {
  Tensor y = flip(input({8, 4}), -1);
  EXPECT_EQ(
      emitted(y),
      "%0 = \"stablehlo.reverse\"(%arg0) <{dimensions = array<i64: 1>}> : (tensor<8x4xf32>) -> "
      "tensor<8x4xf32>");
  EXPECT_EQ(rule_of(y), "([i, j])->([i, j]) {i=8, j=4} permutation={j}");
  EXPECT_TRUE(throws_error([] { flip(input({8}), 1); }, ErrorCode::kOutOfRange,
                           {"flip_test.cc:", "[flip]", "1"}));
}

}  // namespace
}  // namespace meshard
