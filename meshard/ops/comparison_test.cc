#include "meshard/ops/comparison.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/emitted.h"
#include "tests/support/interpreter.h"

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

}  // namespace
}  // namespace meshard
