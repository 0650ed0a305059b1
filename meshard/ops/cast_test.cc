#include "meshard/ops/cast.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Astype, Emits) {
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(emitted(astype(x, DType::bf16)),
            R"(%0 = "stablehlo.convert"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xbf16>)");
}

TEST(Astype, ToItsOwnDtypeIsTheSameTensor) {
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(astype(x, DType::f32).value(), x.value());
}

TEST(Astype, IsAMethod) {
  Tensor x = from_host<float>({1.75f, -2}, {2});
  EXPECT_EQ(emitted(x.astype(DType::i32)), emitted(astype(x, DType::i32)));
}

TEST(Astype, TakesNumbers) {
  EXPECT_EQ(astype(2, DType::f64).type(), (TensorType{DType::f64, Shape{}}));
}

TEST(Astype, CotangentsTakeTheOperandsDtype) {
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  Tensor y = astype(x, DType::bf16);
  EXPECT_EQ(recorded_vjp(y, astype(x, DType::bf16))[0].dtype(), DType::f32);
}

TEST(BitcastConvert, EmitsAndRule) {
  EXPECT_EQ(emitted(bitcast_convert(input({2, 3}), DType::i32)),
            R"(%0 = "stablehlo.bitcast_convert"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xi32>)");
  Tensor parts = bitcast_convert(input({8, 4}), DType::u8);
  EXPECT_EQ(parts.type(), (TensorType{DType::u8, {8, 4, 4}}));
  EXPECT_EQ(rule_of(parts), "([i, j])->([i, j, k]) {i=8, j=4, k=4} need_replication={k}");
  Tensor whole = bitcast_convert(parts, DType::f32);
  EXPECT_EQ(whole.type(), (TensorType{DType::f32, {8, 4}}));
  EXPECT_EQ(rule_of(whole), "([i, j, k])->([i, j]) {i=8, j=4, k=4} need_replication={k}");
}

TEST(BitcastConvert, Errors) {
  EXPECT_TRUE(throws_error(
      [] {
        bitcast_convert(input({2, 3}, DType::u8), DType::f32);
      },
      ErrorCode::kInvalidArgument,
      {"cast_test.cc:", "f32 consists of 4 elements of u8", "u8[2,3]"}));
  EXPECT_TRUE(throws_error([] { bitcast_convert(input({}, DType::u8), DType::u16); },
                           ErrorCode::kInvalidArgument, {"u16 consists of 2 elements of u8"}));
  EXPECT_TRUE(throws_error([] { bitcast_convert(input({2}, DType::bool_), DType::u8); },
                           ErrorCode::kInvalidArgument, {"bool", "astype"}));
}

TEST(BitcastConvert, BitsHaveNoSlope) {
  Tensor x = input({2});
  EXPECT_FALSE(recorded_vjp(bitcast_convert(x, DType::u32), x)[0].defined());
}

}  // namespace
}  // namespace meshard
