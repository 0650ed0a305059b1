#include "meshard/ops/broadcast_in_dim.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(BroadcastInDim, Errors) {
  EXPECT_TRUE(throws_error(
      [] {
        broadcast_in_dim(input({3}), {4, 8}, {1});
      },
      ErrorCode::kInvalidArgument,
      {"broadcast_in_dim_test.cc:", "operand f32[3] dimension 0 = 3", "dimension 1 = 8"}));
  EXPECT_TRUE(throws_error(
      [] {
        broadcast_in_dim(input({8, 8}), {8, 8}, {1, 0});
      },
      ErrorCode::kInvalidArgument, {"[1, 0] are not ascending"}));
  EXPECT_TRUE(throws_error(
      [] {
        broadcast_in_dim(input({4, 8}), {4, 8}, {1});
      },
      ErrorCode::kInvalidArgument, {"1 dimensions", "rank 2"}));
  EXPECT_TRUE(throws_error(
      [] {
        broadcast_to(input({3}), {4, 8});
      },
      ErrorCode::kInvalidArgument,
      {"[broadcast_to]", "[3]", "[4, 8]", "dimension 0 = 3", "dimension 1 = 8"}));
  EXPECT_TRUE(throws_error(
      [] {
        broadcast_to(input({1, 8}), {8});
      },
      ErrorCode::kInvalidArgument, {"rank 2", "rank 1"}));
}

TEST(BroadcastInDim, Emits) {
  EXPECT_EQ(
      emitted(broadcast_to(input({8, 1}), {4, 8, 2})),
      "%0 = \"stablehlo.broadcast_in_dim\"(%arg0) <{broadcast_dimensions = array<i64: 1, 2>}> : "
      "(tensor<8x1xf32>) -> tensor<4x8x2xf32>");
}

TEST(BroadcastInDim, NewAndRepeatedDimensionsAreFactorsOfTheResultOnly) {
  EXPECT_EQ(rule_of(broadcast_to(input({8, 1}), {4, 8, 2})),
            "([j, l])->([i, j, k]) {i=4, j=8, k=2, l=1}");
}

}  // namespace
}  // namespace meshard
