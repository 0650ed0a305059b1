#include "meshard/ops/convolution.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Convolution, Types) {
  EXPECT_EQ(convolution(input({2, 8, 6, 3}), input({3, 3, 3, 5})).shape(), (Shape{2, 6, 4, 5}));
  EXPECT_EQ(
      convolution(input({2, 8, 6, 3}), input({3, 3, 3, 5}), {.padding = Padding::kSame}).shape(),
      (Shape{2, 8, 6, 5}));
  EXPECT_EQ(convolution(input({2, 8, 7, 3}), input({3, 3, 3, 5}),
                        {.strides = {2, 3}, .padding = Padding::kSame})
                .shape(),
            (Shape{2, 4, 3, 5}));
  // 3 elements with a gap between neighbors span 5; a kernel of 2 with a gap spans 3.
  EXPECT_EQ(convolution(input({1, 3, 1}), input({2, 1, 1}),
                        {.input_dilation = {2}, .kernel_dilation = {2}})
                .shape(),
            (Shape{1, 3, 1}));
  EXPECT_EQ(convolution(input({4, 8, 6}), input({4, 2, 3}),
                        {.feature_groups = 4, .layout = {"NCW", "OIW", "NCW"}})
                .shape(),
            (Shape{4, 4, 4}));
  EXPECT_EQ(convolution(input({8, 6, 3}), input({3, 3, 4}), {.batch_groups = 2}).shape(),
            (Shape{4, 4, 4}));
  EXPECT_EQ(convolution(input({1, 3, 2}, DType::bf16), input({5, 2, 2})).type().to_string(),
            "f32[1,0,2]");
}

TEST(Convolution, EmitsAsSpecified) {
  Tensor y =
      convolution(input({1, 4, 5, 2}), input({3, 3, 2, 6}),
                  {.strides = {2, 1}, .padding = {{1, 0}, {0, 2}}, .kernel_dilation = {1, 2}});
  EXPECT_EQ(emitted(y),
            "%0 = \"stablehlo.convolution\"(%arg0, %arg1) <{window_strides = array<i64: 2, 1>, "
            "padding = dense<\"0x01000000000000000000000000000000000000000000000002000000000000"
            "00\"> : tensor<2x2xi64>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: "
            "1, 2>, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, "
            "feature_group_count = 1 : i64, batch_group_count = 1 : i64}> : "
            "(tensor<1x4x5x2xf32>, tensor<3x3x2x6xf32>) -> tensor<1x2x3x6xf32>");
}

TEST(Convolution, RuleSumsOverFeaturesAndGroupsComeFirst) {
  EXPECT_EQ(rule_of(convolution(input({2, 8, 4}), input({1, 4, 6}))),
            "([i, l, k], [m, k, j])->([i, l, j]) {i=2, j=6, k=4, l=8, m=1} reduction={k} "
            "need_replication={m}");
  EXPECT_EQ(rule_of(convolution(input({2, 8, 8}), input({1, 2, 12}), {.feature_groups = 4})),
            "([j, m, il], [n, l, ik])->([j, m, ik]) {i=4, j=2, k=3, l=2, m=8, n=1} reduction={l} "
            "need_replication={i, n}");
}

TEST(Convolution, ErrorsHaveBothValues) {
  auto fails = [](const char* part, auto call) {
    EXPECT_TRUE(throws_error(call, ErrorCode::kInvalidArgument, {"convolution_test.cc:", part}));
  };
  fails("[convolution] the input f32[1,8,3] has 3 features, but the kernel f32[3,4,5] takes 4", [] {
    convolution(input({1, 8, 3}), input({3, 4, 5}));
  });
  fails("the kernel's 5 output features are not a multiple of 2 groups", [] {
    convolution(input({1, 8, 4}), input({3, 2, 5}), {.feature_groups = 2});
  });
  fails("the batch of 3 is not a multiple of 2 groups", [] {
    convolution(input({3, 8, 4}), input({3, 4, 6}), {.batch_groups = 2});
  });
  fails("feature_groups = 2 and batch_groups = 2", [] {
    convolution(input({2, 8, 4}), input({3, 2, 6}), {.feature_groups = 2, .batch_groups = 2});
  });
  fails("f32[1,8,4] and the kernel f32[3,3,4,6] must have the same rank", [] {
    convolution(input({1, 8, 4}), input({3, 3, 4, 6}));
  });
  fails("strides [1, 1] has 2 entries for 1 window dimensions", [] {
    convolution(input({1, 8, 4}), input({3, 4, 6}), {.strides = {1, 1}});
  });
  fails("strides of dimension 0 is 0", [] {
    convolution(input({1, 8, 4}), input({3, 4, 6}), {.strides = {0}});
  });
  fails("padding has 2 pairs for 1 window dimensions", [] {
    convolution(input({1, 8, 4}), input({3, 4, 6}), {.padding = {{1, 1}, {1, 1}}});
  });
  fails("cuts off more than the 8 elements", [] {
    convolution(input({1, 8, 4}), input({3, 4, 6}), {.padding = {{-5, -4}}});
  });
  fails("the layout of the kernel \"OXW\" does not have the letters \"OIW\"", [] {
    convolution(input({1, 4, 8}), input({3, 4, 6}), {.layout = {"NCW", "OXW", "NCW"}});
  });
}

}  // namespace
}  // namespace meshard
