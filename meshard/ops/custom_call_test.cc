#include "meshard/ops/custom_call.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

const std::vector<TensorType> kTypes{{DType::f32, {8}}, {DType::i32, {}}};

TEST(CustomCall, Emits) {
  std::vector<Tensor> y =
      custom_call("mine", {input({8, 4})}, kTypes,
                  {.backend_config = "{count = 3 : i64}",
                   .has_side_effect = true,
                   .sharding_rule = "([i, j])->([i], []) {i=8, j=4} reduction={j}"});
  ASSERT_EQ(y.size(), 2u);
  EXPECT_EQ(y[1].type(), kTypes[1]);
  EXPECT_EQ(
      emitted(y[0]),
      "%0, %1 = \"stablehlo.custom_call\"(%arg0) <{call_target_name = \"mine\", has_side_effect = "
      "true, api_version = 4 : i32, backend_config = {count = 3 : i64}}> {sdy.sharding_rule = "
      "#sdy.op_sharding_rule<([i, j])->([i], []) {i=8, j=4} reduction={j}, custom>} : "
      "(tensor<8x4xf32>) -> (tensor<8xf32>, tensor<i32>)");
  EXPECT_EQ(rule_of(y[0]), "([i, j])->([i], []) {i=8, j=4} reduction={j}");
}

TEST(CustomCall, WithoutARuleAllIsNeededWhole) {
  Tensor y = custom_call("mine", {input({8})}, {{DType::f32, {4}}}, {.api_version = 2})[0];
  EXPECT_EQ(rule_of(y), "([i])->([j]) {i=8, j=4} need_replication={i, j}");
  EXPECT_NE(emitted(y).find("api_version = 2 : i32, backend_config = \"\"}>"), std::string::npos);
}

TEST(CustomCall, Errors) {
  auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(throws_error([] { custom_call("", {input({8})}, kTypes); }, invalid,
                           {"custom_call_test.cc:", "requires a target"}));
  EXPECT_TRUE(throws_error([] { custom_call("f", {input({8})}, {}); }, invalid,
                           {"requires at least one result"}));
  EXPECT_TRUE(throws_error([] { custom_call("f", {input({8})}, kTypes, {.api_version = 5}); },
                           invalid, {"api_version 5"}));
  EXPECT_TRUE(throws_error(
      [] { custom_call("f", {input({8})}, kTypes, {.sharding_rule = "([i])->([i], []) {i=4}"}); },
      invalid, {"sharding rule", "4", "8"}));
  EXPECT_TRUE(
      throws_error([] { custom_call("f", {input({8})}, kTypes, {.sharding_rule = "nonsense"}); },
                   invalid, {"sharding rule"}));
}

}  // namespace
}  // namespace meshard
