#include "meshard/explain/predict/shifted_rule.h"

#include <gtest/gtest.h>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

const TensorType kTen{DType::f32, {10, 32}}, kTwelve{DType::f32, {12, 32}},
    kNumber{DType::f32, Shape()};

std::optional<ShiftedRule> shifted_rule_in(std::string_view op,
                                           const std::vector<TensorType>& operands,
                                           const TensorType& result) {
  stablehlo::Module module =
      stablehlo::Module::parse(
          cat("func.func @main(%x: tensor<12x32xf32>, %y: tensor<10x32xf32>, %z: tensor<f32>) {\n",
              op, "\nreturn\n}\n"))
          .value();
  return shifted_rule(module, module.functions()[0].op->regions[0].ops[0], operands, {&result, 1});
}

TEST(ShiftedRules, Slices) {
  for (std::string_view op :
       {"%0 = stablehlo.slice %x [0:10, 0:32] : (tensor<12x32xf32>) -> tensor<10x32xf32>",
        "%0 = \"stablehlo.slice\"(%x) <{limit_indices = array<i64: 10, 32>, start_indices = "
        "array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<12x32xf32>) -> "
        "tensor<10x32xf32>"}) {
    std::optional<ShiftedRule> rule = shifted_rule_in(op, {kTwelve}, kTen);
    ASSERT_TRUE(rule.has_value()) << op;
    EXPECT_EQ(rule->rule.operands()[0], rule->rule.results()[0]);
    EXPECT_EQ(rule->rule.factors()[0].size, 12);
    EXPECT_EQ(rule->rule.factors()[0].kind, FactorKind::kPermutation);
    EXPECT_EQ(rule->rule.factors()[1].kind, FactorKind::kPassThrough);
    EXPECT_TRUE(rule->keeps_indices);
  }
  for (std::string_view op :
       {"%0 = stablehlo.slice %x [2:12, 0:32] : (tensor<12x32xf32>) -> tensor<10x32xf32>",
        "%0 = \"stablehlo.slice\"(%x) <{limit_indices = array<i64: 12, 32>, start_indices = "
        "array<i64: 2, 0>, strides = array<i64: 1, 1>}> : (tensor<12x32xf32>) -> "
        "tensor<10x32xf32>"}) {
    std::optional<ShiftedRule> rule = shifted_rule_in(op, {kTwelve}, kTen);
    ASSERT_TRUE(rule.has_value()) << op;
    EXPECT_FALSE(rule->keeps_indices) << op;
  }
  TensorType half{DType::f32, {6, 32}};
  for (std::string_view op :
       {"%0 = stablehlo.slice %x [0:12:2, 0:32] : (tensor<12x32xf32>) -> tensor<6x32xf32>",
        "%0 = stablehlo.slice %x [0:6, 0:32] : (tensor<12x32xf32>) -> tensor<6x32xf32>",
        "%0 = stablehlo.tanh %x : tensor<12x32xf32>"})
    EXPECT_FALSE(shifted_rule_in(op, {kTwelve}, half).has_value()) << op;
}

TEST(ShiftedRules, Pads) {
  auto pad = [](std::string_view low, std::string_view high, std::string_view interior) {
    return shifted_rule_in(
        cat("%0 = stablehlo.pad %y, %z, low = [", low, ", 0], high = [", high, ", 0], interior = [",
            interior, ", 0] : (tensor<10x32xf32>, tensor<f32>) -> tensor<12x32xf32>"),
        {kTen, kNumber}, kTwelve);
  };
  std::optional<ShiftedRule> rule = pad("0", "2", "0");
  ASSERT_TRUE(rule.has_value());
  EXPECT_EQ(rule->rule.operands()[0], rule->rule.results()[0]);
  EXPECT_TRUE(rule->rule.operands()[1].empty());
  EXPECT_EQ(rule->rule.factors()[0].size, 12);
  EXPECT_TRUE(rule->keeps_indices);
  EXPECT_FALSE(pad("1", "1", "0")->keeps_indices);
  EXPECT_FALSE(pad("0", "0", "1").has_value());
}

}  // namespace
}  // namespace meshard
