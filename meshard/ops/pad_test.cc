#include "meshard/ops/pad.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Pad, Sizes) {
  EXPECT_EQ(pad(input({4, 4}), 0, {1, 0}, {0, 2}, {2, 1}).shape(), (Shape{11, 9}));
  EXPECT_EQ(pad(input({5}), 0, {-2}, {-1}, {2}).shape(), Shape{10});
  EXPECT_EQ(pad(input({0}), 0, {2}, {1}, {3}).shape(), Shape{3});
  EXPECT_EQ(pad(input({4}, DType::bf16), 1.5, {1}, {0}).dtype(), DType::bf16);
}

TEST(Pad, Errors) {
  EXPECT_TRUE(throws_error([] { pad(input({4}), 0, {-5}, {0}); }, ErrorCode::kInvalidArgument,
                           {"pad_test.cc:", "low -5", "size -1"}));
  EXPECT_TRUE(throws_error([] { pad(input({4}), 0, {0}, {0}, {-1}); }, ErrorCode::kInvalidArgument,
                           {"interior padding of dimension 0 is negative: -1"}));
  EXPECT_TRUE(throws_error([] { pad(input({4}), input({}, DType::i32), {0}, {0}); },
                           ErrorCode::kInvalidArgument, {"f32[4]", "i32[]"}));
}

TEST(Pad, EmitsAndRule) {
  Tensor y = pad(input({8, 4}), 0, {0, 4}, {0, 4});
  EXPECT_EQ(emitted(y),
            "%0 = \"stablehlo.pad\"(%arg0, %arg1) <{edge_padding_low = array<i64: 0, 4>, "
            "edge_padding_high = array<i64: 0, 4>, interior_padding = array<i64: 0, 0>}> : "
            "(tensor<8x4xf32>, tensor<f32>) -> tensor<8x12xf32>");
  EXPECT_EQ(rule_of(y),
            "([i, j], [])->([i, jk]) {i=8, j=4, k=3} need_replication={k} permutation={j}");
}

TEST(Pad, WhatIsCutOffIsSlicedOff) {
  // Only the first element is removed: edge_padding_low restores the gap after it.
  EXPECT_EQ(emitted(pad(input({4}), 0, {-1}, {2}, {1})),
            "%t0 = \"stablehlo.slice\"(%arg0) <{start_indices = array<i64: 1>, "
            "limit_indices = array<i64: 4>, strides = array<i64: 1>}> : "
            "(tensor<4xf32>) -> tensor<3xf32>\n"
            "%0 = \"stablehlo.pad\"(%t0, %arg1) <{edge_padding_low = array<i64: 1>, "
            "edge_padding_high = array<i64: 2>, interior_padding = array<i64: 1>}> : "
            "(tensor<3xf32>, tensor<f32>) -> tensor<8xf32>");
  EXPECT_EQ(emitted(pad(input({4}), 0, {-1}, {-2})),
            "%0 = \"stablehlo.slice\"(%arg0) <{start_indices = array<i64: 1>, "
            "limit_indices = array<i64: 2>, strides = array<i64: 1>}> : "
            "(tensor<4xf32>) -> tensor<1xf32>");
  EXPECT_EQ(emitted(pad(input({4}), 0, {-5}, {2})),
            "%0 = \"stablehlo.broadcast_in_dim\"(%arg1) <{broadcast_dimensions = array<i64>}> : "
            "(tensor<f32>) -> tensor<1xf32>");
}

}  // namespace
}  // namespace meshard
