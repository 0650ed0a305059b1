#include "meshard/ops/division.h"

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
                           {"division_test.cc:", "[floor_divide]", "c64"}));
}

TEST(TruncatedDivide, Emits) {
  EXPECT_EQ(emitted(truncated_divide(input({2}, DType::i32), input({2}, DType::i32))),
            "%0 = stablehlo.divide %arg0, %arg1 : tensor<2xi32>");
}

TEST(TruncatedDivide, IsOfIntegers) {
  EXPECT_EQ(truncated_divide(input({2, 1}, DType::u8), input({3}, DType::i32)).type(),
            (TensorType{DType::i32, {2, 3}}));
  EXPECT_TRUE(throws_error([] { truncated_divide(input({2}), 2); }, ErrorCode::kInvalidArgument,
                           {"division_test.cc:", "takes integers, not f32"}));
}

TEST(Fmod, Emits) {
  Tensor x = from_host<float>({1, 2}, {2});
  EXPECT_EQ(emitted(fmod(x, x)), "%0 = stablehlo.remainder %arg0, %arg1 : tensor<2xf32>");
}

TEST(Fmod, DerivativeAtAPoint) {
  // -7.5 = -3 * 2 - 1.5: the derivative by the divisor is 3, not 4.
  Tensor a = from_host<double>({-7.5}, {1}), b = from_host<double>({2}, {1});
  std::vector<Tensor> slopes = recorded_vjp(fmod(a, b), from_host<double>({1}, {1}));
  EXPECT_EQ(interpret(slopes[0]).item<double>(), 1);
  EXPECT_EQ(interpret(slopes[1]).item<double>(), 3);
}

TEST(Remainder, Emits) {
  Tensor x = from_host<float>({1, 2}, {2}), y = from_host<float>({3, 4}, {2});
  EXPECT_EQ(emitted(remainder(x, y)),
            R"(%t0 = stablehlo.constant dense<0.0> : tensor<2xf32>
%t1 = stablehlo.remainder %arg0, %arg1 : tensor<2xf32>
%t2 = "stablehlo.compare"(%arg1, %t0) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
%t3 = "stablehlo.compare"(%t1, %t0) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
%t4 = stablehlo.xor %t3, %t2 : tensor<2xi1>
%t5 = "stablehlo.compare"(%t1, %t0) <{comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
%t6 = stablehlo.and %t5, %t4 : tensor<2xi1>
%t7 = stablehlo.add %t1, %arg1 : tensor<2xf32>
%t8 = "stablehlo.select"(%t6, %t7, %t1) : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
%t9 = stablehlo.constant dense<0x80000000> : tensor<2xf32>
%t10 = "stablehlo.select"(%t2, %t9, %t0) : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
%0 = "stablehlo.select"(%t5, %t8, %t10) : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>)");
}

// Integers have one zero.
TEST(Remainder, OfIntegersEmitsOneSelection) {
  Tensor x = from_host<std::int32_t>({1, 2}, {2});
  std::string text = emitted(remainder(x, from_host<std::int32_t>({3, 4}, {2})));
  EXPECT_NE(text.find("%0 = \"stablehlo.select\"(%t10, %t11, %t5)"), std::string::npos) << text;
}

// d/db = -floor(a / b), even if a / b is too small for the dtype.
TEST(Remainder, DerivativeByTheDivisor) {
  Tensor a = from_host<float>({5, -5, -1, -2, 4}, {5});
  Tensor b = from_host<float>({3, 3, 3e38f, -3e38f, 2}, {5});
  std::vector<Tensor> slopes =
      recorded_vjp(remainder(a, b), from_host<float>({1, 1, 1, 1, 1}, {5}));
  EXPECT_EQ(interpret(slopes[1]), HostArray::from_vector<float>({-1, 2, 1, 0, -2}));
}

// A divisor of 0 is replaced by 1.
TEST(Remainder, OfUnsignedIntegersIsByANumberThatIsNotZero) {
  Tensor x = from_host<std::uint8_t>({1, 2}, {2});
  std::string text = emitted(remainder(x, x));
  EXPECT_NE(text.find("comparison_direction EQ"), std::string::npos) << text;
  EXPECT_NE(text.find("%0 = stablehlo.remainder %arg0, %t3 : tensor<2xui8>"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace meshard
