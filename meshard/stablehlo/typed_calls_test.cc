#include "meshard/stablehlo/typed_calls.h"

#include <gtest/gtest.h>

#include "meshard/base/cat.h"

namespace meshard::stablehlo {
namespace {

std::string typed(std::string_view call) {
  auto module = [](std::string_view op) {
    return cat("func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {\n  %0 = ", op,
               " : (tensor<8xf32>) -> tensor<8xf32>\n  return %0 : tensor<8xf32>\n}\n");
  };
  std::string made = with_typed_calls(module(call), "f").value();
  std::string around = module("");
  std::size_t begin = around.find("= ") + 2;
  return made.substr(begin, made.size() - around.size());
}

TEST(TypedCalls, AllForms) {
  EXPECT_EQ(typed("stablehlo.custom_call @f(%a)"),
            "stablehlo.custom_call @f(%a) {api_version = 4 : i32}");
  EXPECT_EQ(typed("stablehlo.custom_call @f(%a) {backend_config = \"x, {y\"}"),
            "stablehlo.custom_call @f(%a) {api_version = 4 : i32, backend_config = {}}");
  EXPECT_EQ(typed("stablehlo.custom_call @f(%a) {api_version = 2 : i32, has_side_effect = true}"),
            "stablehlo.custom_call @f(%a) {api_version = 4 : i32, has_side_effect = true}");
  EXPECT_EQ(typed("\"stablehlo.custom_call\"(%a) <{call_target_name = \"f\"}>"),
            "\"stablehlo.custom_call\"(%a) <{api_version = 4 : i32, call_target_name = \"f\"}>");
  EXPECT_EQ(typed("stablehlo.custom_call @g(%a) {backend_config = \"x\"}"),
            "stablehlo.custom_call @g(%a) {backend_config = \"x\"}");
  EXPECT_FALSE(with_typed_calls("func.func @main(", "f").ok());
}

}  // namespace
}  // namespace meshard::stablehlo
