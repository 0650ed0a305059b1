#include "meshard/ops/permute_dims.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(PermuteDims, ReversesByDefault) {
  EXPECT_EQ(permute_dims(input({2, 3, 4})).shape(), (Shape{4, 3, 2}));
  EXPECT_EQ(permute_dims(input({2, 3, 4}), {2, 0, 1}).shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(permute_dims(input({2, 3}), {-1, 0}).shape(), (Shape{3, 2}));
}

TEST(PermuteDims, Errors) {
  EXPECT_TRUE(throws_error(
      [] {
        permute_dims(input({2, 3}), {0, 0});
      },
      ErrorCode::kInvalidArgument,
      {"permute_dims_test.cc:", "[0, 0] is not a permutation", "f32[2,3]"}));
  EXPECT_TRUE(throws_error(
      [] {
        permute_dims(input({2, 3}), {0});
      },
      ErrorCode::kInvalidArgument, {"1 entries", "rank 2"}));
}

TEST(PermuteDims, EmitsAndRule) {
  Tensor y = permute_dims(input({2, 3, 4}), {2, 0, 1});
  EXPECT_EQ(emitted(y),
            "%0 = \"stablehlo.transpose\"(%arg0) <{permutation = array<i64: 2, 0, 1>}> : "
            "(tensor<2x3x4xf32>) -> tensor<4x2x3xf32>");
  EXPECT_EQ(rule_of(y), "([i, j, k])->([k, i, j]) {i=2, j=3, k=4}");
}

}  // namespace
}  // namespace meshard
