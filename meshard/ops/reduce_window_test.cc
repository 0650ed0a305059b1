#include "meshard/ops/reduce_window.h"

#include <gtest/gtest.h>

#include "meshard/ops/definition/attributes.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(ReduceWindow, Types) {
  auto shape = [](Shape x, Dimensions window, WindowOptions options = {}) {
    return reduce_window_sum(input(std::move(x)), std::move(window), std::move(options)).shape();
  };
  EXPECT_EQ(shape({4, 8}, {2, 3}), (Shape{3, 6}));
  EXPECT_EQ(shape({4, 8}, {2, 2}, {.strides = {2, 2}}), (Shape{2, 4}));
  EXPECT_EQ(shape({5, 8}, {2, 3}, {.strides = {2, 3}, .padding = Padding::kSame}), (Shape{3, 3}));
  EXPECT_EQ(shape({4}, {2}, {.padding = {{1, 2}}}), (Shape{6}));
  EXPECT_EQ(shape({4}, {2}, {.base_dilation = {3}}), (Shape{9}));    // 10 elements
  EXPECT_EQ(shape({8}, {3}, {.window_dilation = {2}}), (Shape{4}));  // windows of 5
  EXPECT_EQ(shape({2}, {3}), (Shape{0}));
}

TEST(ReduceWindow, SameIsAsEvenAsItCanBe) {
  auto padding = [](Padding rule) {
    Tensor y = reduce_window_max(input({5}), {4}, {.strides = {2}, .padding = rule});
    const auto& attributes = y.value()->attributes_as<ReduceWindowAttributes>();
    return std::pair(attributes.low[0], attributes.high[0]);
  };
  // 3 windows extend over 2 * 2 + 4 elements: 3 are missing.
  EXPECT_EQ(padding(Padding::kSame), std::pair(std::int64_t{1}, std::int64_t{2}));
  EXPECT_EQ(padding(Padding::kSameLower), std::pair(std::int64_t{2}, std::int64_t{1}));
  EXPECT_EQ(padding(Padding::kValid), std::pair(std::int64_t{0}, std::int64_t{0}));
}

TEST(ReduceWindow, EmitsAsSpecified) {
  Tensor y = reduce_window_max(input({4, 8}), {1, 2}, {.strides = {1, 2}});
  EXPECT_EQ(emitted(y),
            "%t0 = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
            "%0 = \"stablehlo.reduce_window\"(%arg0, %t0) <{window_dimensions = array<i64: 1, 2>, "
            "window_strides = array<i64: 1, 2>, base_dilations = array<i64: 1, 1>, "
            "window_dilations = array<i64: 1, 1>, padding = dense<0> : tensor<2x2xi64>}> ({\n"
            "^bb0(%b0: tensor<f32>, %b1: tensor<f32>):\n"
            "%t1 = stablehlo.maximum %b0, %b1 : tensor<f32>\n"
            "stablehlo.return %t1 : tensor<f32>\n"
            "}) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x4xf32>");
}

TEST(ReduceWindow, StartsFromTheLowestOfEachDType) {
  auto start = [](DType dtype) {
    std::string text = emitted(reduce_window_max(input({4}, dtype), {2}));
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(start(DType::i8), "%t0 = stablehlo.constant dense<-128> : tensor<i8>");
  EXPECT_EQ(start(DType::u16), "%t0 = stablehlo.constant dense<0> : tensor<ui16>");
  EXPECT_EQ(start(DType::u64), "%t0 = stablehlo.constant dense<0> : tensor<ui64>");
  std::string text = emitted(reduce_window_min(input({4}, DType::u64), {2}));
  EXPECT_NE(text.find("dense<18446744073709551615> : tensor<ui64>"), text.npos) << text;
}

TEST(ReduceWindow, RuleKeepsWhatNoWindowTouches) {
  EXPECT_EQ(rule_of(reduce_window_sum(input({4, 8}), {1, 2}, {.strides = {1, 2}})),
            "([i, jk])->([i, j]) {i=4, j=4, k=2} need_replication={k} permutation={j}");
}

TEST(ReduceWindow, ErrorsHaveBothValues) {
  auto fails = [](const char* part, auto call) {
    EXPECT_TRUE(throws_error(call, ErrorCode::kInvalidArgument, {"reduce_window_test.cc:", part}));
  };
  fails("[reduce_window_sum] the window [2] has 1 sizes, but f32[4,8] has rank 2", [] {
    reduce_window_sum(input({4, 8}), {2});
  });
  fails("[reduce_window_max] window of dimension 1 is 0", [] {
    reduce_window_max(input({4, 8}), {1, 0});
  });
  fails("strides [2] has 1 entries for 2 window dimensions", [] {
    reduce_window_min(input({4, 8}), {1, 2}, {.strides = {2}});
  });
  fails("not bool[4]", [] { reduce_window_sum(input({4}, DType::bool_), {2}); });
  fails("not complex numbers; not c64[4]", [] { reduce_window_max(input({4}, DType::c64), {2}); });
}

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
    EXPECT_TRUE(throws_error(call, ErrorCode::kInvalidArgument,
                             {"reduce_window_test.cc:", "[select_and_scatter_add]", part}));
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
