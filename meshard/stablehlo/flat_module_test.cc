#include "meshard/stablehlo/flat_module.h"

#include <gmock/gmock.h>

#include "meshard/base/cat.h"

namespace meshard::stablehlo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::string_view kNested = R"mlir(#loc3 = loc("a.py":7:2)
module @m attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]> loc(#loc3)
  func.func public @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>, tf.aliasing_output = 0 : i32} loc("x")) -> (tensor<4xf32> {jax.result_info = "y"}) {
    %0:2 = call @f(%arg0) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) loc(#loc3)
    %1 = sdy.sharding_constraint %0#1 <@mesh, [{}]> : tensor<4xf32> loc(#loc3)
    %2:2 = call @f(%1) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) loc("b.py":9:2)
    return %2#0 : tensor<4xf32>
  }
  func.func private @f(%arg0: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %cst = stablehlo.constant dense<1.0> : tensor<f32>
    %0 = stablehlo.add %arg0, %arg0 {mhlo.frontend_attributes = {a = "loc(1)"}, mhlo.sharding = "{replicated}"} : tensor<4xf32>
    %1 = "stablehlo.map"(%0) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg1: tensor<f32> loc("z")):
      %2 = stablehlo.add %arg1, %cst : tensor<f32> loc(#loc3)
      stablehlo.return %2 : tensor<f32> loc(#loc3)
    }) : (tensor<4xf32>) -> tensor<4xf32> loc("c.py":1:1)
    return %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
}
)mlir";

std::vector<std::string> mnemonics(const FlatModule& flat) {
  std::vector<std::string> names;
  for (const FlatOp& op : flat.ops()) names.push_back(op.mnemonic);
  return names;
}

TEST(FlatModule, CallsAreReplaced) {
  FlatModule flat = FlatModule::make(std::string(kNested)).value();
  EXPECT_THAT(mnemonics(flat), ElementsAre("stablehlo.constant", "stablehlo.add", "stablehlo.map",
                                           "sdy.sharding_constraint", "stablehlo.constant",
                                           "stablehlo.add", "stablehlo.map"));
  EXPECT_THAT(flat.results(), ElementsAre("%v5"));
  EXPECT_THAT(flat.ops()[2].operands, ElementsAre("%v1", "%v0"));
  EXPECT_THAT(flat.ops()[3].operands, ElementsAre("%v2"));
  EXPECT_THAT(flat.ops()[5].operands, ElementsAre("%v3"));
  EXPECT_EQ(flat.type_of("%v5"), "tensor<4xf32>");
  // Ops without a line have that of the call.
  EXPECT_EQ(flat.ops()[0].place, "a.py:7");
  EXPECT_EQ(flat.ops()[2].place, "c.py:1");
  EXPECT_EQ(flat.ops()[5].place, "b.py:9");
}

TEST(FlatModule, FurtherResults) {
  FlatModule flat = FlatModule::make(std::string(kNested)).value();
  std::vector<std::string> more = {"%v1", "%v6"};
  std::string text = flat.with_results(more);
  EXPECT_THAT(text, HasSubstr("return %v5, %v1, %v6 : tensor<4xf32>, tensor<4xf32>"));
  EXPECT_THAT(text,
              HasSubstr(R"(%a0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})"));
  EXPECT_THAT(text, HasSubstr("%v3 = sdy.sharding_constraint %v2 <@mesh, [{}]>"));
  EXPECT_THAT(text, HasSubstr("sdy.mesh @mesh"));
  EXPECT_TRUE(Module::parse(text).ok());
}

TEST(FlatModule, OnOneDevice) {
  FlatModule flat = FlatModule::make(std::string(kNested)).value();
  std::string text = flat.unsharded();
  EXPECT_THAT(text, HasSubstr("%v3 = stablehlo.reshape %v2 : (tensor<4xf32>) -> tensor<4xf32>"));
  EXPECT_THAT(text, HasSubstr("%v1 = stablehlo.add %a0, %a0 : tensor<4xf32>"));
  EXPECT_THAT(text, HasSubstr("^bb0(%v2_arg1: tensor<f32>)"));
  for (std::string_view gone : {"sdy", "loc(", "mhlo", "tf.", "call"})
    EXPECT_THAT(text, Not(HasSubstr(gone)));
  EXPECT_THAT(flat.given(), IsEmpty());
}

TEST(FlatModule, OpsByThemselves) {
  FlatModule flat = FlatModule::make(std::string(kNested)).value();
  std::vector<std::size_t> ops = {1, 2, 3};
  SeparateOps separate = flat.separate(ops);
  EXPECT_THAT(separate.arguments, ElementsAre("%a0", "%v1", "%v2"));
  EXPECT_THAT(separate.results, ElementsAre("%v1", "%v2", "%v3"));
  // The constant is part of the program; the others take their operands as arguments.
  EXPECT_THAT(separate.text, HasSubstr("%v0 = stablehlo.constant"));
  EXPECT_THAT(separate.text, HasSubstr("%v1 = stablehlo.add %in0, %in0"));
  EXPECT_THAT(separate.text, HasSubstr("\"stablehlo.map\"(%in1)"));
  EXPECT_THAT(separate.text, HasSubstr("%v3 = stablehlo.reshape %in2"));
}

constexpr std::string_view kManual = R"(module @m attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0:2 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>, <@mesh, [{"x"}]>] manual_axes={"x"} (%arg1: tensor<2xf32>) {
      sdy.return %arg1, %arg1 : tensor<2xf32>, tensor<2xf32>
    } : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %1 = call @g(%0#1) : (tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
  func.func private @g(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
    %0 = stablehlo.negate %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
})";

TEST(FlatModule, WhatOneDeviceCannotComputeIsTaken) {
  FlatModule flat = FlatModule::make(std::string(kManual)).value();
  ASSERT_EQ(flat.ops().size(), 2u);
  EXPECT_EQ(flat.ops()[0].kind, FlatKind::kManual);
  EXPECT_EQ(flat.ops()[0].place, "line 4 of the module");
  EXPECT_THAT(flat.given(), ElementsAre("%v0#0", "%v0#1"));
  std::string text = flat.unsharded();
  EXPECT_THAT(text, HasSubstr("%given1: tensor<4xf32>"));
  // Its argument has a sharding, so the function stays.
  EXPECT_THAT(text, HasSubstr("%v1 = call @g(%given1)"));
  EXPECT_THAT(text, HasSubstr("func.func private @g(%arg0: tensor<4xf32>) -> tensor<4xf32>"));
}

TEST(FlatModule, DamagedText) {
  for (std::string_view body :
       {"return %1 : tensor<4xf32>", "return %arg0, %arg0 : tensor<4xf32>, tensor<4xf32>",
        "%0 = call @main() : () -> tensor<4xf32>\n return %0 : tensor<4xf32>", ""}) {
    Result<FlatModule> flat = FlatModule::make(
        cat("module {\n func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n", body,
            "\n }\n}\n"));
    ASSERT_FALSE(flat.ok()) << body;
    EXPECT_EQ(flat.error().code(), ErrorCode::kDataLoss);
  }
}

TEST(FlatModule, NoMain) {
  EXPECT_EQ(FlatModule::make("module {}").error().code(), ErrorCode::kDataLoss);
}

}  // namespace
}  // namespace meshard::stablehlo
