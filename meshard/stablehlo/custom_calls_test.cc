#include "meshard/stablehlo/custom_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/base/whole_file.h"
#include "meshard/stablehlo/jax_export.h"
#include "meshard/stablehlo/module.h"

namespace meshard::stablehlo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::string_view kSolve = R"(module @jit_solve {
  sdy.mesh @one = <[], device_ids=[0]>
  sdy.mesh @mesh = <["d"=8]>
  func.func public @main(%arg0: tensor<16x4x4xf32>, %arg1: tensor<16xcomplex<f32>>) -> tensor<16x4xi32> {
    %0:3 = stablehlo.custom_call @lapack_sgetrf_ffi(%arg0) {mhlo.backend_config = {},
      mhlo.frontend_attributes = {num_batch_dims = "1"}} : (tensor<16x4x4xf32>) -> (tensor<16x4x4xf32>, tensor<16x4xi32>, tensor<16xi32>) loc("getrf")
    %1 = stablehlo.custom_call @other(%arg0) {mhlo.frontend_attributes = {x = "1"}} : (tensor<16x4x4xf32>) -> tensor<16x4xf32>
    %2 = stablehlo.custom_call @pair(%arg1, %arg0) {mhlo.frontend_attributes = {num_batch_dims = "1"}} : (tensor<16xcomplex<f32>>, tensor<16x4x4xf32>) -> tensor<16xcomplex<f32>>
    return %0#1 : tensor<16x4xi32>
  }
}
)";

TEST(BatchedCalls, AreReplacedByCallsOfFunctionsWithTheirTypes) {
  BatchedCalls made = replace_batched_calls(kSolve).value();
  EXPECT_THAT(made.targets, ElementsAre("lapack_sgetrf_ffi", "pair"));
  EXPECT_THAT(made.text, HasSubstr("custom_call @other"));
  EXPECT_THAT(made.text, Not(HasSubstr("num_batch_dims")));
  Module module = Module::parse(made.text).value();
  ASSERT_EQ(module.functions().size(), 3u);
  const ModuleFunction* solve = module.function("meshard.lapack_sgetrf_ffi.0");
  ASSERT_NE(solve, nullptr);
  EXPECT_TRUE(solve->is_private);
  EXPECT_EQ(solve->arguments[0].type, "tensor<16x4x4xf32>");
  ASSERT_EQ(solve->results.size(), 3u);
  EXPECT_EQ(solve->results[1].type, "tensor<16x4xi32>");
  // Split by the first dimension at most, as the framework's own compiler splits the call.
  EXPECT_THAT(made.text, HasSubstr("sdy.sharding_constraint %a0 <@mesh, [{?}, {}, {}]>"));
  // What follows a call keeps its line.
  auto line_of = [](std::string_view text) {
    return std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.find("@other")),
                      '\n');
  };
  EXPECT_EQ(line_of(made.text), line_of(kSolve));
  EXPECT_THAT(made.text, HasSubstr("loc(\"getrf\")"));
}

TEST(BatchedCalls, OthersStay) {
  std::string_view dynamic =
      "func.func @main(%a: tensor<?x4xf32>) -> tensor<?x4xf32> {\n  %0 = stablehlo.custom_call "
      "@f(%a) {mhlo.frontend_attributes = {num_batch_dims = \"1\"}} : (tensor<?x4xf32>) -> "
      "tensor<?x4xf32>\n  return %0 : tensor<?x4xf32>\n}\n";
  BatchedCalls made = replace_batched_calls(dynamic).value();
  EXPECT_EQ(made.text, dynamic);
  EXPECT_THAT(made.targets, IsEmpty());
  EXPECT_FALSE(replace_batched_calls("num_batch_dims func.func @main(").ok());
}

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

TEST(OlderCalls, TheNameIsTheOnlyChange) {
  std::string file = read_whole_file(cat(MESHARD_GOLDEN, "/exported/run/lapack.bin")).value();
  const std::string module(read_jax_export(file).value().module);
  ASSERT_THAT(module, HasSubstr("custom_call_v2"));
  std::string older = with_older_calls(module).value();
  EXPECT_THAT(older, Not(HasSubstr("custom_call_v2")));
  ASSERT_EQ(older.size(), module.size());
  std::size_t changed = 0;
  for (std::size_t i = 0; i < module.size(); ++i) changed += older[i] != module[i];
  EXPECT_EQ(changed, 1u);
  EXPECT_EQ(with_older_calls(older).value(), older);
  EXPECT_EQ(with_older_calls("module @custom_call_v2 {}").value(), "module @custom_call_v2 {}");
}

}  // namespace
}  // namespace meshard::stablehlo
