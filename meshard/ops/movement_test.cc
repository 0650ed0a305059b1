#include "meshard/ops/movement.h"

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

TEST(PermuteDims, IsTheMethodT) {
  Tensor x = input({2, 3, 4});
  EXPECT_EQ(x.T().shape(), (Shape{4, 3, 2}));
  EXPECT_EQ(emitted(x.T()), emitted(permute_dims(x)));
  EXPECT_EQ(x.T().where().line, __LINE__);
}

TEST(PermuteDims, Errors) {
  EXPECT_TRUE(throws_error(
      [] {
        permute_dims(input({2, 3}), {0, 0});
      },
      ErrorCode::kInvalidArgument,
      {"movement_test.cc:", "[0, 0] is not a permutation", "f32[2,3]"}));
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

TEST(Flip, EmitsAndRule) {
  Tensor y = flip(input({8, 4}), -1);
  EXPECT_EQ(
      emitted(y),
      "%0 = \"stablehlo.reverse\"(%arg0) <{dimensions = array<i64: 1>}> : (tensor<8x4xf32>) -> "
      "tensor<8x4xf32>");
  EXPECT_EQ(rule_of(y), "([i, j])->([i, j]) {i=8, j=4} permutation={j}");
  EXPECT_TRUE(throws_error([] { flip(input({8}), 1); }, ErrorCode::kOutOfRange,
                           {"movement_test.cc:", "[flip]", "1"}));
}

TEST(Concat, Types) {
  EXPECT_EQ(concat({input({4, 2}), input({4, 3})}, -1).shape(), (Shape{4, 5}));
  EXPECT_EQ(concat({input({4}, DType::i32), input({2}, DType::bf16)}).dtype(), DType::bf16);
}

TEST(Concat, Errors) {
  EXPECT_TRUE(throws_error([] { concat({}); }, ErrorCode::kInvalidArgument,
                           {"movement_test.cc:", "at least one"}));
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

TEST(Pad, Sizes) {
  EXPECT_EQ(pad(input({4, 4}), 0, {1, 0}, {0, 2}, {2, 1}).shape(), (Shape{11, 9}));
  EXPECT_EQ(pad(input({5}), 0, {-2}, {-1}, {2}).shape(), Shape{10});
  EXPECT_EQ(pad(input({0}), 0, {2}, {1}, {3}).shape(), Shape{3});
  EXPECT_EQ(pad(input({4}, DType::bf16), 1.5, {1}, {0}).dtype(), DType::bf16);
}

TEST(Pad, Errors) {
  EXPECT_TRUE(throws_error([] { pad(input({4}), 0, {-5}, {0}); }, ErrorCode::kInvalidArgument,
                           {"movement_test.cc:", "low -5", "size -1"}));
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
