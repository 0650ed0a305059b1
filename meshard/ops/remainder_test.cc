#include "meshard/ops/remainder.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"

namespace meshard {
namespace {

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
