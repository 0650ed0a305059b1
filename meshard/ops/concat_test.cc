#include "meshard/ops/concat.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Concat, Types) {
  EXPECT_EQ(concat({input({4, 2}), input({4, 3})}, -1).shape(), (Shape{4, 5}));
  EXPECT_EQ(concat({input({4}, DType::i32), input({2}, DType::bf16)}).dtype(), DType::bf16);
}

TEST(Concat, Errors) {
  EXPECT_TRUE(throws_error([] { concat({}); }, ErrorCode::kInvalidArgument,
                           {"concat_test.cc:", "at least one"}));
  EXPECT_TRUE(throws_error(
      [] {
        concat({input({4, 2}), input({3, 2})}, 1);
      },
      ErrorCode::kInvalidArgument, {"tensor 0 dimension 0 = 4", "tensor 1 dimension 0 = 3"}));
  EXPECT_TRUE(throws_error(
      [] {
        concat({input({4}), input({4, 2})});
      },
      ErrorCode::kInvalidArgument, {"f32[4]", "f32[4,2]"}));
  EXPECT_TRUE(throws_error(
      [] {
        concat({input({4}), Tensor()});
      },
      ErrorCode::kInvalidArgument, {"no value"}));
}

TEST(Concat, EmitsAndRule) {
  Tensor y = concat({input({8, 4}), input({8, 8})}, 1);
  EXPECT_EQ(emitted(y),
            "%0 = \"stablehlo.concatenate\"(%arg0, %arg1) <{dimension = 1 : i64}> : "
            "(tensor<8x4xf32>, tensor<8x8xf32>) -> tensor<8x12xf32>");
  EXPECT_EQ(
      rule_of(y),
      "([i, j], [i, jk])->([i, jl]) {i=8, j=4, k=2, l=3} need_replication={k, l} permutation={j}");
}

}  // namespace
}  // namespace meshard
