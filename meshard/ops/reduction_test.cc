#include "meshard/ops/reduction.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Reduction, Types) {
  Tensor x = input({2, 3, 4});
  EXPECT_EQ(sum(x).shape(), Shape{});
  EXPECT_EQ(sum(x, -1).shape(), (Shape{2, 3}));
  EXPECT_EQ(max(x, {0, 2}).shape(), Shape{3});
  EXPECT_EQ(min(x, {2, 0}, true).shape(), (Shape{1, 3, 1}));
  EXPECT_EQ(prod(x, Dimensions{}).value(), x.value());
  // As in the array API standard and JAX (x64 off).
  EXPECT_EQ(sum(input({4}, DType::u8)).dtype(), DType::u32);
  EXPECT_EQ(prod(input({4}, DType::u16)).dtype(), DType::u32);
  EXPECT_EQ(sum(input({4}, DType::i8)).dtype(), DType::i32);
  EXPECT_EQ(prod(input({4}, DType::i16)).dtype(), DType::i32);
  EXPECT_EQ(sum(input({4}, DType::i64)).dtype(), DType::i64);
  EXPECT_EQ(sum(input({4}, DType::u32)).dtype(), DType::u32);
  EXPECT_EQ(sum(input({4}, DType::bool_)).dtype(), DType::i32);
  EXPECT_EQ(sum(input({4}, DType::bf16)).dtype(), DType::bf16);
  EXPECT_EQ(max(input({4}, DType::f8e5m2)).dtype(), DType::f8e5m2);
  EXPECT_EQ(any(input({4}, DType::i32)).dtype(), DType::bool_);
}

TEST(Reduction, NarrowFloatsAreAddedInF32) {
  Tensor total = sum(input({4}, DType::bf16));
  EXPECT_EQ(total.value()->op().name, "astype");
  EXPECT_EQ(total.value()->operands()[0].type().dtype, DType::f32);
}

TEST(Reduction, Errors) {
  EXPECT_TRUE(throws_error(
      [] {
        sum(input({4, 8}), 2);
      },
      ErrorCode::kOutOfRange, {"reduction_test.cc:", "[sum]", "2", "rank 2"}));
  EXPECT_TRUE(throws_error(
      [] {
        sum(input({4, 8}), {1, -1});
      },
      ErrorCode::kInvalidArgument, {"[sum]", "dimension 1 is named twice"}));
  EXPECT_TRUE(throws_error(
      [] {
        max(input({4, 0}), 1);
      },
      ErrorCode::kInvalidArgument, {"[max]", "empty dimension", "dimension 1 of f32[4,0]"}));
  EXPECT_TRUE(throws_error([] { min(input({4}, DType::bool_)); }, ErrorCode::kInvalidArgument,
                           {"[min]", "bool[4]"}));
}

TEST(Reduction, Emits) {
  EXPECT_EQ(emitted(sum(input({4, 8}), 1)),
            "%t0 = stablehlo.constant dense<0.0> : tensor<f32>\n"
            "%0 = \"stablehlo.reduce\"(%arg0, %t0) <{dimensions = array<i64: 1>}> ({\n"
            "^bb0(%b0: tensor<f32>, %b1: tensor<f32>):\n"
            "%t1 = stablehlo.add %b0, %b1 : tensor<f32>\n"
            "stablehlo.return %t1 : tensor<f32>\n"
            "}) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>");
  EXPECT_NE(emitted(max(input({4}))).find("dense<0xFF800000>"), std::string::npos);
  EXPECT_NE(emitted(min(input({4}, DType::i8))).find("dense<127>"), std::string::npos);
  EXPECT_NE(emitted(max(input({4}, DType::i64))).find("dense<-9223372036854775808>"),
            std::string::npos);
  EXPECT_NE(emitted(min(input({4}, DType::u64))).find("dense<18446744073709551615>"),
            std::string::npos);
  EXPECT_NE(emitted(all(input({4}, DType::bool_))).find("stablehlo.and"), std::string::npos);
}

TEST(Reduction, ReducedDimensionsAreReductionFactors) {
  EXPECT_EQ(rule_of(sum(input({4, 8, 2}), {0, 2})),
            "([i, j, k])->([j]) {i=4, j=8, k=2} reduction={i, k}");
}

}  // namespace
}  // namespace meshard
