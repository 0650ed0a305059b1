#include "meshard/ops/slice.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Slice, SizesCountTheElementsTaken) {
  EXPECT_EQ(slice(input({16, 7}), {1, 0}, {16, 7}, {2, 3}).shape(), (Shape{8, 3}));
  EXPECT_EQ(slice(input({16}), {4}, {4}).shape(), Shape{0});
}

TEST(Slice, Errors) {
  EXPECT_TRUE(throws_error([] { slice(input({4}), {1}, {5}); }, ErrorCode::kInvalidArgument,
                           {"slice_test.cc:", "range 1:5", "dimension 0 = 4"}));
  EXPECT_TRUE(
      throws_error([] { slice(input({4}), {3}, {2}); }, ErrorCode::kInvalidArgument, {"3:2"}));
  EXPECT_TRUE(throws_error([] { slice(input({4}), {0}, {2}, {0}); }, ErrorCode::kInvalidArgument,
                           {"stride of dimension 0 is 0"}));
  EXPECT_TRUE(throws_error(
      [] {
        slice(input({4}), {0, 0}, {2});
      },
      ErrorCode::kInvalidArgument, {"start has 2 entries", "rank 1"}));
}

TEST(Slice, EmitsAndRule) {
  Tensor y = slice(input({8, 16}), {0, 2}, {8, 12}, {1, 1});
  EXPECT_EQ(
      emitted(y),
      "%0 = \"stablehlo.slice\"(%arg0) <{start_indices = array<i64: 0, 2>, limit_indices = "
      "array<i64: 8, 12>, strides = array<i64: 1, 1>}> : (tensor<8x16xf32>) -> tensor<8x10xf32>");
  // 2 divides 16 and 10: this factor of the dimension may stay split, the rest may not.
  EXPECT_EQ(rule_of(y),
            "([i, jk])->([i, jl]) {i=8, j=2, k=8, l=5} need_replication={k, l} permutation={j}");
}

}  // namespace
}  // namespace meshard
