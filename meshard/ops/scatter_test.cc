#include "meshard/ops/scatter.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

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
