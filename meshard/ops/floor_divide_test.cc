#include "meshard/ops/floor_divide.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

// The values are tested in tests/conformance/composites_test.cc, compiled.
TEST(FloorDivide, EmitsWhatRemainsForFloats) {
  Tensor x = from_host<float>({1, 2}, {2}), y = from_host<float>({3, 4}, {2});
  std::string text = emitted(floor_divide(x, y));
  EXPECT_NE(text.find("%t1 = stablehlo.remainder %arg0, %arg1 : tensor<2xf32>"), std::string::npos)
      << text;
  EXPECT_NE(text.find("stablehlo.round_nearest_afz"), std::string::npos) << text;
  // The limits: infinities and zeros.
  EXPECT_NE(text.find("\"stablehlo.is_finite\"(%arg0)"), std::string::npos) << text;
  EXPECT_NE(text.find("\"stablehlo.is_finite\"(%arg1)"), std::string::npos) << text;
  EXPECT_NE(text.find("%t21 = stablehlo.floor %t20 : tensor<2xf32>"), std::string::npos) << text;
}

TEST(FloorDivide, OfUnsignedIntegersIsOneDivision) {
  Tensor x = from_host<std::uint8_t>({1, 2}, {2});
  EXPECT_EQ(emitted(floor_divide(x, from_host<std::uint8_t>({3, 4}, {2}))),
            "%0 = stablehlo.divide %arg0, %arg1 : tensor<2xui8>");
}

TEST(FloorDivide, HasTheDerivativeZero) {
  Tensor x = from_host<float>({1, 2}, {2}), y = from_host<float>({3, 4}, {2});
  for (const Tensor& slope : recorded_vjp(floor_divide(x, y), from_host<float>({1, 1}, {2})))
    EXPECT_FALSE(slope.defined());
}

TEST(FloorDivide, DtypesAndShapes) {
  EXPECT_EQ(floor_divide(input({2, 1}, DType::i8), input({3}, DType::i8)).type(),
            (TensorType{DType::i8, {2, 3}}));
  EXPECT_EQ(floor_divide(input({3}, DType::i32), 2.5).type(), (TensorType{DType::f32, {3}}));
  EXPECT_EQ(floor_divide(7, input({3}, DType::bf16)).type(), (TensorType{DType::bf16, {3}}));
  EXPECT_EQ(floor_divide(input({3}, DType::bool_), true).dtype(), DType::i32);
  EXPECT_TRUE(throws_error([] { floor_divide(input({3}, DType::c64), 2); },
                           ErrorCode::kInvalidArgument,
                           {"floor_divide_test.cc:", "[floor_divide]", "c64"}));
}

}  // namespace
}  // namespace meshard
