#include "meshard/ops/scatter.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

const ScatterDimensions kUpdatedRows{.update_window_dims = {1},
                                     .inserted_window_dims = {0},
                                     .scatter_dims_to_operand_dims = {0},
                                     .index_vector_dim = 1};

TEST(ScatterAdd, Errors) {
  Tensor x = input({8, 4}), at = input({12}, DType::i32);
  EXPECT_TRUE(throws_error(
      [&] {
        scatter_add(x, at, input({11, 4}), kUpdatedRows);
      },
      ErrorCode::kInvalidArgument,
      {"scatter_test.cc:", "updates dimension 0 = 11", "indices dimension 0 = 12"}));
  EXPECT_TRUE(throws_error(
      [&] {
        scatter_add(x, at, input({12, 5}), kUpdatedRows);
      },
      ErrorCode::kInvalidArgument, {"updates dimension 1 = 5", "operand dimension 1 = 4"}));
  EXPECT_TRUE(throws_error(
      [&] {
        scatter_add(x, at, input({12, 4}, DType::f64), kUpdatedRows);
      },
      ErrorCode::kInvalidArgument, {"f32[8,4]", "f64[12,4]"}));
  EXPECT_TRUE(throws_error(
      [&] {
        scatter_add(x, at, input({12, 4, 1}), kUpdatedRows);
      },
      ErrorCode::kInvalidArgument, {"have rank 3"}));
}

TEST(ScatterAdd, EmitsAndRule) {
  Tensor y = scatter_add(input({8, 4}), input({12}, DType::i32), input({12, 4}), kUpdatedRows);
  EXPECT_EQ(
      emitted(y),
      "%0 = \"stablehlo.scatter\"(%arg0, %arg1, %arg2) <{scatter_dimension_numbers = "
      "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
      "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, "
      "unique_indices = false}> ({\n"
      "^bb0(%b0: tensor<f32>, %b1: tensor<f32>):\n"
      "%t0 = stablehlo.add %b0, %b1 : tensor<f32>\n"
      "stablehlo.return %t0 : tensor<f32>\n"
      "}) : (tensor<8x4xf32>, tensor<12xi32>, tensor<12x4xf32>) -> tensor<8x4xf32>");
  EXPECT_EQ(rule_of(y),
            "([k, j], [i], [i, j])->([k, j]) {i=12, j=4, k=8} reduction={i} need_replication={k}");
}

// The partitioner ends the process if indices are narrower than 32 bits.
TEST(ScatterAdd, NarrowIndicesAreWidened) {
  Tensor y = scatter_add(input({8, 4}), input({12}, DType::u8), input({12, 4}), kUpdatedRows);
  std::string text = emitted(y);
  EXPECT_TRUE(text.starts_with("%t0 = \"stablehlo.convert\"(%arg1)")) << text;
  EXPECT_NE(text.find("\"stablehlo.scatter\"(%arg0, %t0, %arg2)"), std::string::npos) << text;
}

const ScatterDimensions kRowsOf{.update_window_dims = {1},
                                .inserted_window_dims = {0},
                                .scatter_dims_to_operand_dims = {0},
                                .index_vector_dim = 1};

std::string body(Tensor (*op)(In, In, In, ScatterDimensions, bool, bool)) {
  std::string text =
      emitted(op(input({8, 4}), input({12}, DType::i32), input({12, 4}), kRowsOf, false, true));
  std::size_t begin = text.find("tensor<f32>):\n") + 14;
  return text.substr(begin, text.find("\n}", begin) - begin);
}

TEST(Scatter, Emits) {
  EXPECT_EQ(body(scatter_set), "stablehlo.return %b1 : tensor<f32>");
  EXPECT_EQ(body(scatter_multiply),
            "%t0 = stablehlo.multiply %b0, %b1 : tensor<f32>\nstablehlo.return %t0 : tensor<f32>");
  EXPECT_EQ(body(scatter_min),
            "%t0 = stablehlo.minimum %b0, %b1 : tensor<f32>\nstablehlo.return %t0 : tensor<f32>");
  EXPECT_EQ(body(scatter_max),
            "%t0 = stablehlo.maximum %b0, %b1 : tensor<f32>\nstablehlo.return %t0 : tensor<f32>");
}

TEST(Scatter, OnlySumsOfShardsAreCombined) {
  Tensor y = scatter_max(input({8, 4}), input({12}, DType::i32), input({12, 4}), kRowsOf);
  EXPECT_EQ(rule_of(y), "([k, j], [i], [i, j])->([k, j]) {i=12, j=4, k=8} need_replication={i, k}");
}

TEST(Scatter, Errors) {
  Tensor at = input({12}, DType::i32);
  EXPECT_TRUE(throws_error(
      [&] {
        scatter_set(input({8, 4}), at, input({12, 4}, DType::f64), kRowsOf);
      },
      ErrorCode::kInvalidArgument, {"scatter_test.cc:", "[scatter_set]", "f32[8,4]", "f64[12,4]"}));
  Tensor bools = input({8, 4}, DType::bool_), more = input({12, 4}, DType::bool_);
  EXPECT_EQ(scatter_set(bools, at, more, kRowsOf).type(), bools.type());
  EXPECT_TRUE(throws_error([&] { scatter_max(bools, at, more, kRowsOf); },
                           ErrorCode::kInvalidArgument, {"[scatter_max]", "bool[8,4]"}));
}

}  // namespace
}  // namespace meshard
