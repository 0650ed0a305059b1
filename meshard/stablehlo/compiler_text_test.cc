#include "meshard/stablehlo/compiler_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/base/whole_file.h"
#include "meshard/stablehlo/custom_calls.h"
#include "meshard/stablehlo/jax_export.h"
#include "meshard/stablehlo/module.h"
#include "meshard/stablehlo/module_reader.h"
#include "tests/support/matchers.h"

namespace meshard::stablehlo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string prepared(std::string_view text, std::string_view entry = {}) {
  Result<CompilerText> made = text_for_compiler(text, entry);
  EXPECT_TRUE(made.ok()) << made.error().message();
  return made.ok() ? made->text : std::string();
}

std::string why_refused(std::string_view text, std::string_view entry = {}) {
  Result<CompilerText> made = text_for_compiler(text, entry);
  return made.ok() ? cat("accepted: ", made->text) : made.error().message();
}

auto lines_of(std::string_view text) { return std::count(text.begin(), text.end(), '\n'); }

constexpr std::string_view kTwo = R"(module {
  func.func @step(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = call @helper(%a) : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
  func.func @"eval!"(%a: tensor<8xf32>) -> tensor<8xf32> {
    return %a : tensor<8xf32>
  }
  func.func private @helper(%a: tensor<8xf32>) -> tensor<8xf32> {
    return %a : tensor<8xf32> loc("@step")
  }
}
)";

TEST(CompilerText, WhatNeedsNothingStaysAsItIs) {
  std::string text =
      "module {\n  func.func public @main(%a: tensor<8xf32> {jax.arg_info = \"#x.y<1>\", "
      "quant.q = !quant.uniform<i8:f32, 2.0>}) -> tensor<8xf32> {\n    return %a : "
      "tensor<8xf32> loc(#loc)\n  }\n}\n#loc = loc(\"a#b.c<\")\n";
  Result<CompilerText> made = text_for_compiler(text);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->text, text);
  EXPECT_THAT(made->notes, IsEmpty());
}

TEST(CompilerText, TheOnlyPublicFunctionIsTheEntry) {
  std::string text = prepared(
      "module {\n  func.func @\"first step!\"(%a: tensor<8xf32>) -> tensor<8xf32> {\n    return %a "
      ": tensor<8xf32>\n  }\n  func.func private @other() {\n    return\n  }\n}\n");
  EXPECT_THAT(text, HasSubstr("func.func @main(%a: tensor<8xf32>)"));
  EXPECT_THAT(text, HasSubstr("private @other()"));
  EXPECT_TRUE(read_module(text).ok());
  // The only function, although it is private.
  EXPECT_THAT(prepared("func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> {\n  return %a : "
                       "tensor<8xf32>\n}\n"),
              HasSubstr("func.func @main("));
}

TEST(CompilerText, AnEntryIsChosenByName) {
  EXPECT_THAT(why_refused(kTwo), HasSubstr("several public functions: `step`, `eval!`"));
  EXPECT_THAT(why_refused(kTwo), HasSubstr("--entry"));
  EXPECT_THAT(why_refused(kTwo, "stop"), HasSubstr("no function `stop` (--entry): it has `step`"));
  std::string step = prepared(kTwo, "step");
  EXPECT_THAT(step, HasSubstr("func.func @main(%a"));
  EXPECT_THAT(step, HasSubstr("func.func private @\"eval!\"("));
  EXPECT_THAT(step, HasSubstr("loc(\"@step\")"));  // only a string
  Module module = Module::parse(step).value();
  EXPECT_NE(module.function("main"), nullptr);
  EXPECT_EQ(module.function("step"), nullptr);
  EXPECT_THAT(prepared(kTwo, "eval!"), HasSubstr("func.func @main(%a"));
  EXPECT_THAT(prepared(kTwo, "helper"), HasSubstr("func.func @main(%a"));
}

TEST(CompilerText, AnotherMainGetsAnotherName) {
  std::string text = prepared(
      "module {\n  func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {\n    return %a : "
      "tensor<8xf32>\n  }\n  func.func @train(%a: tensor<8xf32>) -> tensor<8xf32> {\n    %0 = call "
      "@main(%a) : (tensor<8xf32>) -> tensor<8xf32>\n    return %0 : tensor<8xf32>\n  }\n}\n",
      "train");
  EXPECT_THAT(text, HasSubstr("func.func private @main_0("));
  EXPECT_THAT(text, HasSubstr("func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {\n    %0 = "
                              "call @main_0(%a)"));
}

constexpr std::string_view kDialects = R"(#shard = #tt.shard<presharded>
#both = [#shard, 1]
module attributes {tt.system = #shard, mhlo.num_partitions = 8 : i32} {
  func.func @main(%a: tensor<8xf32> {tt.x = #tt.x<"}", [1]>, sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>},
                  %b: tensor<8xf32> {jax.arg_info = "b", tt.x = #both, tt.y = !tt.device},
                  %c: tensor<8xf32> {tt.x = #tt<x>, tt.y = #shard}) -> tensor<8xf32> {
    %0 = stablehlo.add %a, %b {tt.cost = #shard} : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
)";

TEST(CompilerText, AttributesOfUnknownDialectsAreLeftOut) {
  Result<CompilerText> made = text_for_compiler(kDialects);
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_THAT(made->text, Not(HasSubstr("tt.")));
  EXPECT_THAT(made->text, Not(HasSubstr("#shard")));
  EXPECT_THAT(made->text, HasSubstr("%b: tensor<8xf32> {jax.arg_info = \"b\"}"));
  EXPECT_THAT(made->text, HasSubstr("%c: tensor<8xf32> {}"));
  EXPECT_THAT(made->text, HasSubstr("{ mhlo.num_partitions = 8 : i32}"));
  EXPECT_EQ(lines_of(made->text), lines_of(kDialects));
  EXPECT_THAT(made->notes, ElementsAre("7 attributes of the dialect `tt`, which the compiler does "
                                       "not support, are ignored"));
  ModuleFacts facts = read_module(made->text).value();
  EXPECT_EQ(facts.arguments[0].sharding, "#sdy.sharding<@mesh, [{\"y\"}]>");
  EXPECT_EQ(facts.arguments[1].name, "b");
}

// As JAX 0.12 writes them.
TEST(CompilerText, PendingMaximaAreTakenWhereTheyAreMarked) {
  const std::string with = R"(module @jit_f {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}], unreduced=max{"x"}>}) -> (tensor<4xf32> {jax.result_info = ", unreduced=max{x}"}) {
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{"y"}], unreduced=min{"x"}> : tensor<4xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"y"}], unreduced={"x"}> : tensor<4xf32>
    return %1 : tensor<4xf32>
  }
})";
  const std::string without = R"(module @jit_f {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) -> (tensor<4xf32> {jax.result_info = ", unreduced=max{x}"}) {
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{"y"}]> : tensor<4xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"y"}], unreduced={"x"}> : tensor<4xf32>
    return %1 : tensor<4xf32>
  }
})";
  CompilerText made = text_for_compiler(with).value();
  EXPECT_EQ(made.text, without);
  EXPECT_THAT(made.notes, ElementsAre(HasSubstr("2 shardings are unreduced by a maximum")));
}

TEST(CompilerText, BytecodeThatNamesReductionsBecomesText) {
  auto module = [](std::string_view name) {
    std::string file = read_whole_file(cat(MESHARD_GOLDEN, "/exported/run/", name, ".bin")).value();
    return std::string(read_jax_export(file).value().module);
  };
  CompilerText made = bytecode_for_compiler(module("unreduced_inside")).value();
  EXPECT_TRUE(is_module_text(made.text));
  EXPECT_THAT(made.text, AllOf(HasSubstr("sdy.sharding_constraint"), Not(HasSubstr("unreduced"))));
  EXPECT_THAT(made.notes, ElementsAre(HasSubstr("reduced where it is marked")));
  EXPECT_EQ(bytecode_for_compiler(module("shared")).value().text,
            with_older_calls(module("shared")).value());
  EXPECT_EQ(bytecode_for_compiler("module {}").value().text, "module {}");
}

TEST(CompilerText, OpsAndTypesOfUnknownDialectsAreNamed) {
  EXPECT_THAT(why_refused("func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {\n  %0 = "
                          "\"ttir.relu\"(%a) : (tensor<8xf32>) -> tensor<8xf32>\n  return %0 : "
                          "tensor<8xf32>\n}\n"),
              HasSubstr("line 2: the op `ttir.relu` is of the dialect `ttir`"));
  EXPECT_THAT(
      why_refused("func.func @main(%a: tensor<8xf32, #ttnn.layout<tile>>) -> tensor<8xf32> {\n"
                  "  return %a : tensor<8xf32>\n}\n"),
      HasSubstr("line 1: `#ttnn.layout` is of the dialect `ttnn`"));
  EXPECT_THAT(why_refused("func.func @main(%a: !torch.vtensor<[8],f32>) {\n  return\n}\n"),
              HasSubstr("`!torch.vtensor` is of the dialect `torch`"));
}

TEST(CompilerText, WhatIsNoModule) {
  EXPECT_THAT(why_refused("HloModule jit_f, is_scheduled=true\n\nENTRY %main () -> f32[] {\n}\n"),
              HasSubstr("HLO module"));
  EXPECT_THAT(why_refused("\n  HloModule jit_f\n"), HasSubstr("HLO module"));
  EXPECT_THAT(why_refused("module {}"), HasSubstr("no function"));
  EXPECT_THAT(why_refused("module {\n  func.func private @f(tensor<8xf32>)\n}\n"),
              HasSubstr("no function"));
  EXPECT_THAT(why_refused("func.func @main("), HasSubstr("not closed"));
}

// Truncated texts and changed bytes never cause a crash or a hang.
TEST(CompilerText, DamagedTexts) {
  for (std::string_view whole : {kTwo, kDialects})
    for (std::size_t at = 0; at < whole.size(); ++at) {
      (void)text_for_compiler(whole.substr(0, at)).ok();
      for (char c : {'<', '"', '}', '#', ',', '@'}) {
        std::string damaged(whole);
        damaged[at] = c;
        (void)text_for_compiler(damaged, "step").ok();
      }
    }
}

}  // namespace
}  // namespace meshard::stablehlo
