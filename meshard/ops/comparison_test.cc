#include "meshard/ops/comparison.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/emitted.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Comparison, Emits) {
  Tensor x = from_host<float>({1, 2}, {2}), y = from_host<float>({3, 4}, {2});
  auto expected = [](std::string direction) {
    return R"(%0 = "stablehlo.compare"(%arg0, %arg1) <{comparison_direction = #stablehlo<comparison_direction )" +
           direction + ">}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>";
  };
  EXPECT_EQ(emitted(equal(x, y)), expected("EQ"));
  EXPECT_EQ(emitted(not_equal(x, y)), expected("NE"));
  EXPECT_EQ(emitted(less(x, y)), expected("LT"));
  EXPECT_EQ(emitted(less_equal(x, y)), expected("LE"));
  EXPECT_EQ(emitted(greater(x, y)), expected("GT"));
  EXPECT_EQ(emitted(greater_equal(x, y)), expected("GE"));
}

TEST(Comparison, GivesBoolsOfThePromotedOperands) {
  Tensor integers = from_host<std::int32_t>({1, 2}, {2}), halves = from_host<float>({1.5f, 2}, {2});
  Tensor result = less(integers, halves);
  EXPECT_EQ(result.dtype(), DType::bool_);
  EXPECT_EQ(result.value()->operands()[0].type().dtype, DType::f32);
  EXPECT_EQ(interpret(result), HostArray::from_vector<bool>({true, false}));
}

TEST(Logical, Emits) {
  Tensor a = from_host(HostArray::from_vector<bool>({true, false})), b = a;
  EXPECT_EQ(emitted(logical_and(a, b)), "%0 = stablehlo.and %arg0, %arg1 : tensor<2xi1>");
  EXPECT_EQ(emitted(logical_or(a, b)), "%0 = stablehlo.or %arg0, %arg1 : tensor<2xi1>");
  EXPECT_EQ(emitted(logical_xor(a, b)), "%0 = stablehlo.xor %arg0, %arg1 : tensor<2xi1>");
  EXPECT_EQ(emitted(logical_not(a)), "%0 = stablehlo.not %arg0 : tensor<2xi1>");
}

TEST(Logical, TakesBoolsOnly) {
  Tensor numbers = from_host<float>({1, 0}, {2});
  EXPECT_TRUE(throws_error([&] { logical_or(numbers, true); }, ErrorCode::kInvalidArgument,
                           {"[logical_or] takes bools, not f32", "not_equal(x, 0)"}));
  EXPECT_TRUE(throws_error([&] { logical_not(numbers); }, ErrorCode::kInvalidArgument,
                           {"[logical_not] takes bools, not f32"}));
}

}  // namespace
}  // namespace meshard
