#include "meshard/ops/bitcast_convert.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

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
      {"bitcast_convert_test.cc:", "f32 consists of 4 elements of u8", "u8[2,3]"}));
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
