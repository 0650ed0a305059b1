#include "meshard/ops/select_and_scatter_add.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

const SelectAndScatterAddAttributes kPairs{.select = WindowSelect::kGreatest,
                                           .window = {1, 2},
                                           .strides = {1, 2},
                                           .low = {0, 0},
                                           .high = {0, 0}};

TEST(SelectAndScatterAdd, EmitsAsSpecified) {
  Tensor y = select_and_scatter_add(input({4, 8}), input({4, 4}), kPairs);
  EXPECT_EQ(y.type(), (TensorType{DType::f32, {4, 8}}));
  EXPECT_EQ(emitted(y),
            "%t0 = stablehlo.constant dense<0.0> : tensor<f32>\n"
            "%0 = \"stablehlo.select_and_scatter\"(%arg0, %arg1, %t0) <{window_dimensions = "
            "array<i64: 1, 2>, window_strides = array<i64: 1, 2>, padding = dense<0> : "
            "tensor<2x2xi64>}> ({\n"
            "^bb0(%b0: tensor<f32>, %b1: tensor<f32>):\n"
            "%t1 = \"stablehlo.compare\"(%b0, %b1) <{comparison_direction = "
            "#stablehlo<comparison_direction GE>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
            "stablehlo.return %t1 : tensor<i1>\n"
            "}, {\n"
            "^bb0(%b2: tensor<f32>, %b3: tensor<f32>):\n"
            "%t2 = stablehlo.add %b2, %b3 : tensor<f32>\n"
            "stablehlo.return %t2 : tensor<f32>\n"
            "}) : (tensor<4x8xf32>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x8xf32>");
}

TEST(SelectAndScatterAdd, ErrorsHaveBothValues) {
  auto fails = [](const char* part, auto call) {
    EXPECT_TRUE(
        throws_error(call, ErrorCode::kInvalidArgument,
                     {"select_and_scatter_add_test.cc:", "[select_and_scatter_add]", part}));
  };
  fails("dimension 1 of f32[4,8] has 4 windows, but the source f32[4,8] has size 8", [] {
    select_and_scatter_add(input({4, 8}), input({4, 8}), kPairs);
  });
  fails("dtypes differ: f32[4,8] and f64[4,4]", [] {
    select_and_scatter_add(input({4, 8}), input({4, 4}, DType::f64), kPairs);
  });
  fails("ranks differ", [] { select_and_scatter_add(input({4, 8}), input({4}), kPairs); });
  fails("not c64[4,8]", [] {
    select_and_scatter_add(input({4, 8}, DType::c64), input({4, 4}, DType::c64), kPairs);
  });
}

}  // namespace
}  // namespace meshard
