#include "meshard/ops/slicing.h"

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
                           {"slicing_test.cc:", "range 1:5", "dimension 0 = 4"}));
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

TEST(DynamicSlice, TypesAndStarts) {
  Tensor at = input({}, DType::i64);
  Tensor y = dynamic_slice(input({8, 4}), {at, 0}, {2, 3});
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  EXPECT_EQ(y.value()->operands()[2].type().dtype, DType::i64) << "tensors decide for numbers";
}

TEST(DynamicSlice, Errors) {
  Tensor x = input({8, 4});
  auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(throws_error(
      [&] {
        dynamic_slice(x, {0}, {2, 3});
      },
      invalid, {"slicing_test.cc:", "starts has 1 entries", "rank 2"}));
  EXPECT_TRUE(throws_error([&] { dynamic_slice(x, {0, 0}, {2}); }, invalid, {"sizes has 1"}));
  EXPECT_TRUE(throws_error(
      [&] {
        dynamic_slice(x, {0, 0}, {9, 1});
      },
      invalid, {"size 9 of dimension 0", "0..8"}));
  EXPECT_TRUE(throws_error(
      [&] {
        dynamic_slice(x, {input({}), 0}, {1, 1});
      },
      invalid, {"start of dimension 0", "not f32[]"}));
  EXPECT_TRUE(throws_error(
      [&] {
        dynamic_slice(x, {input({1}, DType::i32), 0}, {1, 1});
      },
      invalid, {"rank 0", "i32[1]"}));
  EXPECT_TRUE(throws_error([&] { dynamic_slice(x, {0.5, 0}, {1, 1}); }, invalid, {"not 0.5"}));
}

TEST(DynamicSlice, EmitsAndRule) {
  Tensor at = input({}, DType::i32), narrow = input({}, DType::u8);
  Tensor y = dynamic_slice(input({8, 4}), {at, at}, {4, 4});
  EXPECT_EQ(emitted(y),
            "%0 = \"stablehlo.dynamic_slice\"(%arg0, %arg1, %arg2) <{slice_sizes = array<i64: 4, "
            "4>}> : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<4x4xf32>");
  EXPECT_EQ(rule_of(y),
            "([ij, k], [], [])->([i, k]) {i=4, j=2, k=4} need_replication={j} "
            "permutation={i}");
  EXPECT_NE(emitted(dynamic_slice(input({8}), {narrow}, {4})).find("stablehlo.convert"),
            std::string::npos);
}

TEST(DynamicUpdateSlice, TheUpdateTakesTheDtype) {
  Tensor y = dynamic_update_slice(input({8, 4}, DType::bf16), input({2, 4}), {1, 0});
  EXPECT_EQ(y.type(), (TensorType{DType::bf16, {8, 4}}));
}

TEST(DynamicUpdateSlice, Errors) {
  Tensor x = input({8, 4});
  auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(throws_error(
      [&] {
        dynamic_update_slice(x, input({9, 4}), {0, 0});
      },
      invalid, {"slicing_test.cc:", "f32[9,4]", "dimension 0"}));
  EXPECT_TRUE(throws_error(
      [&] {
        dynamic_update_slice(x, input({4}), {0, 0});
      },
      invalid, {"dtype and rank", "f32[4]"}));
  EXPECT_TRUE(throws_error([&] { dynamic_update_slice(x, x, {0}); }, invalid, {"starts has 1"}));
}

TEST(DynamicUpdateSlice, EmitsAndRule) {
  Tensor at = input({}, DType::i32);
  Tensor y = dynamic_update_slice(input({8, 4}), input({4, 4}), {at, at});
  EXPECT_EQ(emitted(y),
            "%0 = \"stablehlo.dynamic_update_slice\"(%arg0, %arg1, %arg2, %arg3) : "
            "(tensor<8x4xf32>, tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>");
  EXPECT_EQ(rule_of(y),
            "([ij, k], [i, k], [], [])->([ij, k]) {i=4, j=2, k=4} "
            "need_replication={j} permutation={i}");
}

TEST(LayerSlice, HasTheShapeOfOneLayer) {
  EXPECT_EQ(layer_slice(input({12, 4, 5}), 11).shape(), (Shape{4, 5}));
  EXPECT_EQ(layer_slice(input({12}), 0).shape(), Shape{});
}

TEST(LayerSlice, Errors) {
  EXPECT_TRUE(throws_error(
      [] {
        layer_slice(input({4, 2}), 4);
      },
      ErrorCode::kInvalidArgument, {"slicing_test.cc:", "layer 4", "4 layers of f32[4,2]"}));
  EXPECT_TRUE(
      throws_error([] { layer_slice(input({4}), -1); }, ErrorCode::kInvalidArgument, {"layer -1"}));
  EXPECT_TRUE(throws_error([] { layer_slice(input({}), 0); }, ErrorCode::kInvalidArgument,
                           {"f32[]", "no dimension for the layers"}));
}

TEST(LayerSlice, EmitsAndRule) {
  Tensor y = layer_slice(input({8, 16}), 3);
  EXPECT_EQ(emitted(y),
            "%t0 = \"stablehlo.slice\"(%arg0) <{start_indices = array<i64: 3, 0>, limit_indices = "
            "array<i64: 4, 16>, strides = array<i64: 1, 1>}> : (tensor<8x16xf32>) -> "
            "tensor<1x16xf32>\n"
            "%0 = \"stablehlo.reshape\"(%t0) : (tensor<1x16xf32>) -> tensor<16xf32>");
  EXPECT_EQ(rule_of(y), "([i, j])->([j]) {i=8, j=16} need_replication={i}");
}

}  // namespace
}  // namespace meshard
