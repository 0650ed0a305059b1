#include "meshard/stablehlo/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace meshard::stablehlo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Module parsed(std::string text) {
  Result<Module> module = Module::parse(std::move(text));
  if (!module.ok()) {
    ADD_FAILURE() << module.error().message();
    return Module::parse("").value();
  }
  return *module;
}

std::string refusal(std::string text) {
  Result<Module> module = Module::parse(std::move(text));
  if (module.ok()) return "";
  EXPECT_EQ(module.error().code(), ErrorCode::kDataLoss);
  return module.error().message();
}

std::vector<std::string> mnemonics(const std::vector<ModuleOp>& ops) {
  std::vector<std::string> out;
  for_each_op(ops, [&](const ModuleOp& op) { out.push_back(op.mnemonic); });
  return out;
}

std::vector<std::string> names(const Module& module, const std::vector<int>& numbers) {
  std::vector<std::string> out;
  for (int number : numbers)
    out.emplace_back(number < 0 ? "?" : std::string(module.variable(number).name));
  return out;
}

const ModuleOp& find_op(const Module& module, std::string_view mnemonic) {
  const ModuleOp* found = nullptr;
  for_each_op(module.ops(), [&](const ModuleOp& op) {
    if (!found && op.mnemonic == mnemonic) found = &op;
  });
  EXPECT_NE(found, nullptr) << mnemonic;
  return *found;
}

constexpr const char* kProgram = R"(#loc1 = loc("x")
module @m attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=4]> {stablehlo.mesh = {axes = []}} loc(#loc)
  func.func public @main(%arg0: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>} loc(#loc1),
      %arg1: tensor<32x8xf32>)
      -> (tensor<16xf32> {jax.result_info = "y"}, tensor<16x8xf32>) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc("n0")
    // %9 = stablehlo.comment %8
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32> loc("n1"("a.cc":3:4))
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<16x8xf32>, tensor<f32>) -> tensor<16xf32>
    %2:2 = func.call @inner(%1, %cst) : (tensor<16xf32>, tensor<f32>) -> (tensor<16xf32>, tensor<i1>)
    %3 = stablehlo.slice %2#0 [0:16:2] : (tensor<16xf32>) -> tensor<8xf32>
    %4 = stablehlo.compare  LT, %2#0, %1,  FLOAT : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xi1>
    return %2#0, %0 : tensor<16xf32>, tensor<16x8xf32>
  } loc(#loc)
  func.func private @inner(%arg0: tensor<16xf32>, %arg1: tensor<f32>) -> (tensor<16xf32>, tensor<i1>) {
    %c = stablehlo.constant dense<12> : tensor<i32>
    %0:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg0) : tensor<i32>, tensor<16xf32>
    cond {
      %1 = stablehlo.compare LT, %iterArg, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = mine.op %iterArg_0 {weights = [1, 2], "odd name"} : tensor<16xf32>
      stablehlo.return %iterArg, %1 : tensor<i32>, tensor<16xf32>
    }
    %1 = "stablehlo.case"(%c) ({
      stablehlo.return %0#1 : tensor<16xf32>
    }, {
      %2 = stablehlo.negate %0#1 : tensor<16xf32>
      stablehlo.return %2 : tensor<16xf32>
    }) {hint = #hint} : (tensor<i32>) -> tensor<16xf32>
    %3 = stablehlo.select %p, %1, %1 : tensor<i1>, tensor<16xf32>
    return %1, %3 : tensor<16xf32>, tensor<i1>
  }
}
#loc = loc(unknown)
#hint = "loud"
)";

TEST(Module, OpsOfAProgram) {
  Module module = parsed(kProgram);
  EXPECT_THAT(
      mnemonics(module.ops()),
      ElementsAre("builtin.module", "sdy.mesh", "func.func", "stablehlo.constant",
                  "stablehlo.dot_general", "stablehlo.reduce", "func.call", "stablehlo.slice",
                  "stablehlo.compare", "func.return", "func.func", "stablehlo.constant",
                  "stablehlo.while", "stablehlo.compare", "stablehlo.return", "mine.op",
                  "stablehlo.return", "stablehlo.case", "stablehlo.return", "stablehlo.negate",
                  "stablehlo.return", "stablehlo.select", "func.return"));
  const ModuleOp& product = find_op(module, "stablehlo.dot_general");
  EXPECT_THAT(names(module, product.operands), ElementsAre("%arg0", "%arg1"));
  EXPECT_EQ(module.variable(product.results[0]).type, "tensor<16x8xf32>");
  EXPECT_EQ(find_attribute(product.attributes, "contracting_dims"), "[1] x [0]");
  EXPECT_EQ(find_attribute(product.attributes, "precision"), "[DEFAULT, DEFAULT]");
  EXPECT_EQ(product.location, "loc(\"n1\"(\"a.cc\":3:4))");
  EXPECT_EQ(module.location_name(product.location), "n1");
  EXPECT_TRUE(product.text.starts_with("%0 = stablehlo.dot_general"));
  EXPECT_TRUE(product.text.ends_with(")"));
  EXPECT_TRUE(product.text_before_location().ends_with("-> tensor<16x8xf32>"));
  const ModuleOp& sum = find_op(module, "stablehlo.reduce");
  EXPECT_THAT(names(module, sum.operands), ElementsAre("%0", "%cst"));
  EXPECT_EQ(find_attribute(sum.attributes, "dimensions"), "[1]");
  const ModuleOp& call = find_op(module, "func.call");
  EXPECT_EQ(call.symbol, "inner");
  ASSERT_EQ(call.results.size(), 2u);
  EXPECT_EQ(module.variable(call.results[1]).type, "tensor<i1>");
  EXPECT_EQ(find_op(module, "stablehlo.slice").operands, std::vector{call.results[0]});
  EXPECT_EQ(find_op(module, "stablehlo.slice").attributes[0].value, "[0:16:2]");
  EXPECT_EQ(find_op(module, "stablehlo.compare").attributes[0].value, "LT");
}

TEST(Module, RegionsAndWhatTheySee) {
  Module module = parsed(kProgram);
  const ModuleOp& loop = find_op(module, "stablehlo.while");
  ASSERT_EQ(loop.regions.size(), 2u);
  EXPECT_THAT(names(module, loop.operands), ElementsAre("%c", "%arg0"));
  EXPECT_THAT(names(module, loop.regions[1].arguments), ElementsAre("%iterArg", "%iterArg_0"));
  EXPECT_NE(loop.regions[0].arguments, loop.regions[1].arguments);
  EXPECT_EQ(module.variable(loop.regions[1].arguments[1]).type, "tensor<16xf32>");
  // The constant outside of the loop.
  EXPECT_EQ(loop.regions[0].ops[0].operands,
            (std::vector{loop.regions[0].arguments[0], loop.operands[0]}));
  EXPECT_EQ(find_op(module, "mine.op").operands, std::vector{loop.regions[1].arguments[1]});
  EXPECT_THAT(integers_of(find_attribute(find_op(module, "mine.op").attributes, "weights")),
              ElementsAre(1, 2));
  const ModuleOp& choice = find_op(module, "stablehlo.case");
  ASSERT_EQ(choice.regions.size(), 2u);
  EXPECT_EQ(choice.regions[0].ops[0].operands, std::vector{loop.results[1]});
  EXPECT_EQ(module.resolve(find_attribute(choice.attributes, "hint")), "\"loud\"");
  // `%p` is not defined; of the types `pred, T` the last is the result's.
  const ModuleOp& select = find_op(module, "stablehlo.select");
  EXPECT_THAT(names(module, select.operands), ElementsAre("?", "%1", "%1"));
  EXPECT_EQ(module.variable(select.results[0]).type, "tensor<16xf32>");
}

TEST(Module, Functions) {
  Module module = parsed(kProgram);
  ASSERT_EQ(module.functions().size(), 2u);
  const ModuleFunction& main = *module.function("main");
  EXPECT_EQ(main.op->symbol, "main");
  EXPECT_EQ(main.op->regions[0].arguments.size(), 2u);
  ASSERT_EQ(main.arguments.size(), 2u);
  EXPECT_EQ(find_attribute(main.arguments[0].attributes, "sdy.sharding"),
            "#sdy.sharding<@mesh, [{\"a\"}, {}]>");
  EXPECT_EQ(module.location_name(main.arguments[0].location), "x");
  EXPECT_EQ(main.arguments[1].type, "tensor<32x8xf32>");
  EXPECT_TRUE(main.arguments[1].dictionary.empty());
  ASSERT_EQ(main.results.size(), 2u);
  EXPECT_EQ(plain_text(find_attribute(main.results[0].attributes, "jax.result_info")), "y");
  EXPECT_EQ(module.function("inner")->op->symbol, "inner");
  EXPECT_EQ(module.function("other"), nullptr);
}

TEST(Module, GenericForm) {
  Module module = parsed(R"("builtin.module"() <{sym_name = "m"}> ({
  "func.func"() <{arg_attrs = [{a.b = 1 : i32}, {}], function_type = (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<8x4xf32> loc("x"), %arg1: tensor<f32> loc(unknown)):
    %0 = "stablehlo.reduce"(%arg0, %arg1) <{dimensions = array<i64: 1>}> ({
    ^bb0(%b0: tensor<f32>, %b1: tensor<f32>):
      %t = stablehlo.add %b0, %b1 : tensor<f32>
      "stablehlo.return"(%t) : (tensor<f32>) -> ()
    }) {a = true} : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32> loc("n2")
    "func.return"(%0) : (tensor<8xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 2 : i32} : () -> ()
)");
  EXPECT_THAT(mnemonics(module.ops()),
              ElementsAre("builtin.module", "func.func", "stablehlo.reduce", "stablehlo.add",
                          "stablehlo.return", "func.return"));
  const ModuleFunction& main = *module.function("main");
  EXPECT_TRUE(main.generic);
  ASSERT_EQ(main.arguments.size(), 2u);
  EXPECT_EQ(main.arguments[0].dictionary, "{a.b = 1 : i32}");
  EXPECT_EQ(module.location_name(main.arguments[0].location), "x");
  const ModuleOp& sum = find_op(module, "stablehlo.reduce");
  EXPECT_THAT(names(module, sum.operands), ElementsAre("%arg0", "%arg1"));
  EXPECT_THAT(integers_of(find_attribute(sum.attributes, "dimensions")), ElementsAre(1));
  EXPECT_EQ(find_attribute(sum.attributes, "a"), "true");
  EXPECT_EQ(module.variable(sum.results[0]).type, "tensor<8xf32>");
  EXPECT_THAT(names(module, sum.regions[0].arguments), ElementsAre("%b0", "%b1"));
}

TEST(Module, PrettyReductionsOfSeveral) {
  Module module = parsed(R"(func.func @main(%a: tensor<4x8xf32>, %i: tensor<f32>) {
    %0:2 = stablehlo.reduce(%a init: %i), (%a init: %i) across dimensions = [1, 0] : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
     reducer(%b: tensor<f32>, %c: tensor<f32>) (%d: tensor<f32>, %e: tensor<f32>)  {
      stablehlo.return %b, %d : tensor<f32>, tensor<f32>
    }
    return
  })");
  const ModuleOp& sum = find_op(module, "stablehlo.reduce");
  EXPECT_THAT(names(module, sum.operands), ElementsAre("%a", "%a", "%i", "%i"));
  EXPECT_EQ(sum.results.size(), 2u);
  EXPECT_THAT(names(module, sum.regions.at(0).arguments), ElementsAre("%b", "%c", "%d", "%e"));
  EXPECT_EQ(mnemonics(module.ops()).back(), "func.return");
}

TEST(Module, IntegersOfAttributes) {
  EXPECT_THAT(integers_of("array<i64: 1, -2>"), ElementsAre(1, -2));
  EXPECT_THAT(integers_of("array<i64>"), IsEmpty());
  EXPECT_THAT(integers_of("[1, 0]"), ElementsAre(1, 0));
  EXPECT_THAT(integers_of("3 : i64"), ElementsAre(3));
  EXPECT_THAT(integers_of("dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(integers_of("dense<\"0xFFFFFFFFFFFFFFFF0300000000000000\"> : tensor<1x2xi64>"),
              ElementsAre(-1, 3));
  EXPECT_THAT(integers_of("dense<\"0x01000000FEFFFFFF\"> : tensor<2xi32>"), ElementsAre(1, -2));
  EXPECT_THAT(integers_of("dense<\"0x01"), IsEmpty());
}

TEST(Module, WhatCannotBeRead) {
  EXPECT_THAT(refusal("func.func @main(%a: tensor<8xf32>"), HasSubstr("is not closed"));
  EXPECT_THAT(refusal("module {\n  %0 = \"a\n}"), HasSubstr("unterminated string"));
  EXPECT_THAT(refusal("module {\n  %0 stablehlo.add\n}"), HasSubstr("line 2: expected `=`"));
  EXPECT_THAT(refusal("module {\n  %0 = stablehlo.add(%1\n}"), HasSubstr("unmatched"));
  EXPECT_THAT(refusal("module {"), HasSubstr("the region is not closed"));
  EXPECT_THAT(refusal("}"), HasSubstr("unmatched"));
  EXPECT_THAT(refusal("%0:99999999 = a.b\n"), HasSubstr("expected fewer results"));
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "a.b {\n";
  EXPECT_THAT(refusal(deep), HasSubstr("nested too deeply"));
}

// No cut and no changed byte makes it crash or hang.
TEST(Module, DamagedTexts) {
  std::string text = kProgram;
  for (std::size_t cut = 0; cut < text.size(); cut += 3)
    (void)Module::parse(text.substr(0, cut)).ok();
  for (std::size_t at = 0; at < text.size(); ++at)
    for (char c : {'<', '"', '}', '\0', ',', '%', '\n', '=', '('}) {
      std::string damaged = text;
      damaged[at] = c;
      (void)Module::parse(damaged).ok();
    }
}

// The module texts of one recorded file: the file itself, or the strings of a JSON file that are
// modules.
std::vector<std::string> texts_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (path.extension() == ".mlir") return {content};
  std::vector<std::string> texts;
  for (std::size_t at = content.find('"'); at != std::string::npos; at = content.find('"', at)) {
    std::string text;
    for (++at; at < content.size() && content[at] != '"'; ++at) {
      if (content[at] != '\\') {
        text += content[at];
        continue;
      }
      char c = content[++at];
      text += c == 'n' ? '\n' : c == 't' ? '\t' : c;
    }
    ++at;
    if (text.find("func.func") != std::string::npos) texts.push_back(std::move(text));
  }
  return texts;
}

std::vector<std::string> recorded_texts() {
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(MESHARD_GOLDEN)) {
    std::string name = entry.path().filename();
    if (entry.path().extension() != ".mlir" && name != "lowered_modules.json") continue;
    for (std::string& text : texts_in(entry.path())) texts.push_back(std::move(text));
  }
  return texts;
}

// True if `text` has nothing but blanks, braces and block labels.
bool is_between_ops(std::string_view text) {
  std::size_t label = text.find('^');
  if (label != std::string_view::npos) text = text.substr(0, label);
  return text.find_first_not_of(" \n{}") == std::string_view::npos;
}

class Places {
 public:
  explicit Places(const Module& module) : module_(module) {}

  void check() {
    // Outside of all ops are only the aliases of locations.
    check_ops(module_.ops(), {0, module_.text().size()}, [](std::string_view gap) {
      return gap.find("stablehlo.") == std::string_view::npos;
    });
  }
  std::size_t ops = 0;

 private:
  std::string_view text(std::size_t from, std::size_t to) const {
    return module_.text().substr(from, to - from);
  }
  void check_inside(std::string_view part, std::string_view whole) const {
    if (part.empty()) return;
    TextRange in = module_.range(part), out = module_.range(whole);
    EXPECT_TRUE(out.begin <= in.begin && in.end <= out.end) << part << " in " << whole;
    EXPECT_EQ(text(in.begin, in.end), part);
  }

  template <class Gap>
  void check_ops(const std::vector<ModuleOp>& all, TextRange whole, const Gap& is_gap) {
    std::size_t at = whole.begin;
    for (const ModuleOp& op : all) {
      TextRange range = module_.range(op.text);
      ASSERT_LE(at, range.begin) << op.text;
      EXPECT_TRUE(is_gap(text(at, range.begin))) << text(at, range.begin);
      at = range.end;
      check_op(op);
    }
    ASSERT_LE(at, whole.end);
    EXPECT_TRUE(is_gap(text(at, whole.end))) << text(at, whole.end);
  }

  void check_op(const ModuleOp& op) {
    ++ops;
    std::string bare = op.mnemonic.substr(op.mnemonic.find('.') + 1);
    std::string_view head = op.text.substr(0, op.text.find('('));
    EXPECT_NE(head.find(bare), std::string_view::npos) << op.text;
    EXPECT_TRUE(op.text.ends_with(op.location)) << op.text;
    for (const ModuleAttribute& attribute : op.attributes) check_inside(attribute.value, op.text);
    for (int operand : op.operands) {
      ASSERT_GE(operand, 0) << op.text;
      EXPECT_NE(op.text.find(module_.variable(operand).name), std::string_view::npos) << op.text;
    }
    for (int result : op.results) {
      check_inside(module_.variable(result).name, op.text);
      check_inside(module_.variable(result).type, op.text);
      EXPECT_FALSE(module_.variable(result).type.empty()) << op.text;
    }
    for (const ModuleRegion& region : op.regions) {
      check_inside(region.text, op.text);
      EXPECT_TRUE(region.text.starts_with("{") && region.text.ends_with("}")) << region.text;
      check_ops(region.ops, module_.range(region.text), is_between_ops);
    }
  }

  const Module& module_;
};

TEST(Module, EveryByteOfRecordedModulesHasItsPlace) {
  std::vector<std::string> texts = recorded_texts();
  ASSERT_GE(texts.size(), 22u) << MESHARD_GOLDEN;
  std::size_t ops = 0;
  for (const std::string& text : texts) {
    Module module = parsed(text);
    EXPECT_EQ(module.text(), text);
    Places places(module);
    places.check();
    ops += places.ops;
    EXPECT_NE(module.function("main"), nullptr);
    for (const ModuleFunction& function : module.functions())
      for (const ModuleBoundary& argument : function.arguments)
        EXPECT_TRUE(argument.type.starts_with("tensor<")) << argument.type;
  }
  EXPECT_GT(ops, 1200u);
}

// An op's text alone is read as it is in the module: so are functions and single ops.
TEST(Module, PartsOfRecordedModulesAreReadAlike) {
  for (const std::string& text : recorded_texts()) {
    Module module = parsed(text);
    for (const ModuleFunction& function : module.functions()) {
      Module alone = parsed(std::string(function.op->text));
      ASSERT_EQ(alone.functions().size(), 1u);
      EXPECT_EQ(mnemonics(alone.ops()), mnemonics({*function.op}));
    }
    for_each_op(module.ops(), [&](const ModuleOp& op) {
      Module alone = parsed(std::string(op.text));
      ASSERT_EQ(alone.ops().size(), 1u) << op.text;
      const ModuleOp& again = alone.ops()[0];
      EXPECT_EQ(again.text, op.text);
      EXPECT_EQ(again.mnemonic, op.mnemonic);
      EXPECT_EQ(again.operands.size(), op.operands.size());
      EXPECT_EQ(again.results.size(), op.results.size());
      EXPECT_EQ(again.attributes.size(), op.attributes.size());
    });
  }
}

}  // namespace
}  // namespace meshard::stablehlo
