#include "meshard/ops/gather.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

const GatherDimensions kRows{
    .offset_dims = {1}, .collapsed_slice_dims = {0}, .start_index_map = {0}, .index_vector_dim = 1};

TEST(Gather, Types) {
  EXPECT_EQ(gather(input({8, 4}), input({12}, DType::i32), kRows, {1, 4}).shape(), (Shape{12, 4}));
  Tensor boxes = gather(input({6, 8}), input({2, 4}, DType::i8),
                        {.offset_dims = {1, 2}, .start_index_map = {0, 1}}, {2, 3});
  EXPECT_EQ(boxes.shape(), (Shape{4, 2, 3}));
}

TEST(Gather, Errors) {
  Tensor x = input({8, 4}), at = input({12}, DType::i32);
  EXPECT_TRUE(throws_error(
      [&] {
        gather(x, input({12}), kRows, {1, 4});
      },
      ErrorCode::kInvalidArgument, {"gather_test.cc:", "not f32[12]"}));
  EXPECT_TRUE(throws_error(
      [&] {
        gather(x, at, kRows, {1, 5});
      },
      ErrorCode::kInvalidArgument, {"slice size 5 of dimension 1", "0..4"}));
  EXPECT_TRUE(throws_error(
      [&] {
        gather(x, at, kRows, {2, 4});
      },
      ErrorCode::kInvalidArgument, {"slice size 2", "dimension 0 is above 1"}));
  GatherDimensions wrong = kRows;
  wrong.start_index_map = {0, 1};
  EXPECT_TRUE(throws_error(
      [&] {
        gather(x, at, wrong, {1, 4});
      },
      ErrorCode::kInvalidArgument, {"has 1 components", "names 2"}));
  wrong = kRows;
  wrong.collapsed_slice_dims = {};
  EXPECT_TRUE(throws_error(
      [&] {
        gather(x, at, wrong, {1, 4});
      },
      ErrorCode::kInvalidArgument, {"rank 2"}));
}

TEST(Gather, EmitsAndRule) {
  Tensor y = gather(input({8, 4}), input({12}, DType::i32), kRows, {1, 4});
  EXPECT_EQ(
      emitted(y),
      "%0 = \"stablehlo.gather\"(%arg0, %arg1) <{dimension_numbers = "
      "#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
      "index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>, indices_are_sorted = false}> : "
      "(tensor<8x4xf32>, tensor<12xi32>) -> tensor<12x4xf32>");
  EXPECT_EQ(rule_of(y), "([k, j], [i])->([i, j]) {i=12, j=4, k=8} need_replication={k}");
}

// The partitioner ends the process if indices are narrower than 32 bits.
TEST(Gather, NarrowIndicesAreWidened) {
  for (DType narrow : {DType::i8, DType::u8, DType::i16, DType::u16}) {
    std::string text = emitted(gather(input({8, 4}), input({12}, narrow), kRows, {1, 4}));
    EXPECT_TRUE(text.starts_with("%t0 = \"stablehlo.convert\"(%arg1)")) << text;
    EXPECT_NE(text.find("\"stablehlo.gather\"(%arg0, %t0)"), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with("(tensor<8x4xf32>, tensor<12xi32>) -> tensor<12x4xf32>")) << text;
  }
}

}  // namespace
}  // namespace meshard
