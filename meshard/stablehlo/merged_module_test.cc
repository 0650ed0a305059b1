#include "meshard/stablehlo/merged_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/base/cat.h"
#include "meshard/stablehlo/module.h"

namespace meshard::stablehlo {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kStep = R"(#loc = loc("step.py":1:0)
#loc1 = loc("x"(#loc))
module @step attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["x"=8]>
  sdy.mesh @empty = <[]>
  func.func public @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>, tf.aliasing_output = 0 : i32} loc(#loc1)) -> (tensor<8xf32> {jax.result_info = "@mesh"}) {
    %0 = func.call @helper(%arg0) : (tensor<8xf32>) -> tensor<8xf32> loc(#loc1)
    %1 = sdy.sharding_constraint %0 <@mesh, [{}]> : tensor<8xf32>
    %2 = stablehlo.custom_call @helper(%1) : (tensor<8xf32>) -> tensor<8xf32>
    %3 = sdy.sharding_constraint %2 <@empty, [{}]> : tensor<8xf32>
    return %3 : tensor<8xf32>
  }
  func.func @helper(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    return %arg0 : tensor<8xf32>
  }
}
)";

TEST(MergedModule, NamesAreUnique) {
  MergedModule merged = merge_module(kStep, "step_1", {{"mesh", "mesh_3"}}).value();
  EXPECT_EQ(merged.entry, "step_1.main");
  EXPECT_EQ(merged.aliases,
            "#step_1_loc = loc(\"step.py\":1:0)\n#step_1_loc1 = loc(\"x\"(#step_1_loc))\n");
  EXPECT_THAT(merged.functions,
              HasSubstr("func.func private @step_1.main(%arg0: tensor<8xf32>  loc(#step_1_loc1))"));
  EXPECT_THAT(merged.functions, HasSubstr("func.func private @step_1.helper("));
  EXPECT_THAT(merged.functions, HasSubstr("func.call @step_1.helper(%arg0)"));
  EXPECT_THAT(merged.functions, HasSubstr("<@mesh_3, [{}]>"));
  EXPECT_THAT(merged.functions, HasSubstr("<@step_1.empty, [{}]>"));
  EXPECT_THAT(merged.functions, HasSubstr("sdy.mesh @step_1.empty = <[]>"));
  // What a custom call names is not a function of the module.
  EXPECT_THAT(merged.functions, HasSubstr("stablehlo.custom_call @helper("));
  for (const char* gone : {"@mesh =", "aliasing_output", "result_info", "public"})
    EXPECT_THAT(merged.functions, Not(HasSubstr(gone)));
  Result<Module> parsed = Module::parse(cat(merged.aliases, "module {\n", merged.functions, "}\n"));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  EXPECT_NE(parsed->function("step_1.main"), nullptr);
}

TEST(MergedModule, GenericForm) {
  std::string text = R"("builtin.module"() ({
  "func.func"() <{arg_attrs = [{jax.buffer_donor = true}], function_type = (tensor<f32>) -> tensor<f32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<f32>):
    "func.return"(%arg0) : (tensor<f32>) -> ()
  }) : () -> ()
}) : () -> ()
)";
  MergedModule merged = merge_module(text, "p", {}).value();
  EXPECT_EQ(merged.entry, "p.main");
  EXPECT_THAT(merged.functions, HasSubstr("sym_name = \"p.main\""));
  EXPECT_THAT(merged.functions, HasSubstr("sym_visibility = \"private\""));
  EXPECT_THAT(merged.functions, Not(HasSubstr("donor")));
}

TEST(MergedModule, NeedsAnEntry) {
  EXPECT_FALSE(merge_module("module {\n}\n", "p", {}).ok());
  EXPECT_FALSE(merge_module("module {", "p", {}).ok());
}

}  // namespace
}  // namespace meshard::stablehlo
