#include "meshard/ops/bitwise.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Bitwise, Emits) {
  Tensor a = from_host<std::uint32_t>({1, 2}, {2}), b = a;
  EXPECT_EQ(emitted(bitwise_and(a, b)), "%0 = stablehlo.and %arg0, %arg1 : tensor<2xui32>");
  EXPECT_EQ(emitted(bitwise_or(a, b)), "%0 = stablehlo.or %arg0, %arg1 : tensor<2xui32>");
  EXPECT_EQ(emitted(bitwise_xor(a, b)), "%0 = stablehlo.xor %arg0, %arg1 : tensor<2xui32>");
  EXPECT_EQ(emitted(bitwise_invert(a)), "%0 = stablehlo.not %arg0 : tensor<2xui32>");
  EXPECT_EQ(emitted(bitwise_left_shift(a, b)),
            "%0 = stablehlo.shift_left %arg0, %arg1 : tensor<2xui32>");
}

TEST(Bitwise, RightShiftKeepsTheSignOfSignedIntegers) {
  Tensor with_sign = from_host<std::int32_t>({1, 2}, {2}),
         without = from_host<std::uint32_t>({1, 2}, {2});
  EXPECT_EQ(emitted(bitwise_right_shift(with_sign, with_sign)),
            "%0 = stablehlo.shift_right_arithmetic %arg0, %arg1 : tensor<2xi32>");
  EXPECT_EQ(emitted(bitwise_right_shift(without, without)),
            "%0 = stablehlo.shift_right_logical %arg0, %arg1 : tensor<2xui32>");
}

TEST(Bitwise, BitsOfSignedIntegersWithoutTheSign) {
  Tensor x = from_host<std::int32_t>({1, 2}, {2});
  EXPECT_EQ(emitted(shift_right_logical(x, x)),
            "%0 = stablehlo.shift_right_logical %arg0, %arg1 : tensor<2xi32>");
  EXPECT_EQ(emitted(popcnt(x)), "%0 = stablehlo.popcnt %arg0 : tensor<2xi32>");
  EXPECT_EQ(emitted(count_leading_zeros(x)),
            "%0 = stablehlo.count_leading_zeros %arg0 : tensor<2xi32>");
  EXPECT_TRUE(throws_error([] { popcnt(from_host<float>({1}, {1})); }, ErrorCode::kInvalidArgument,
                           {"[popcnt] takes integers, not f32"}));
}

TEST(Bitwise, TakesNoFloatsAndShiftsNoBools) {
  Tensor bools = from_host(HostArray::from_vector<bool>({true, false}));
  EXPECT_EQ(bitwise_and(bools, true).dtype(), DType::bool_);
  EXPECT_TRUE(throws_error([&] { bitwise_left_shift(bools, bools); }, ErrorCode::kInvalidArgument,
                           {"[bitwise_left_shift] takes integers, not bool"}));
  EXPECT_TRUE(throws_error([&] { bitwise_and(from_host<float>({1}, {1}), 1); },
                           ErrorCode::kInvalidArgument,
                           {"[bitwise_and] takes integers or bools, not f32"}));
}

}  // namespace
}  // namespace meshard
