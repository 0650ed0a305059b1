#include "meshard/lowering/module_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/lowering/lower.h"
#include "meshard/ops/definition/op_table.h"
#include "meshard/stablehlo/types.h"
#include "tests/support/op_samples/op_samples.h"

namespace meshard {
namespace {

std::vector<TensorType> ruled_types(const stablehlo::Module& module,
                                    const std::vector<int>& variables) {
  std::vector<TensorType> out;
  for (int variable : variables) {
    if (variable < 0) continue;
    std::optional<TensorType> type = stablehlo::parse_type(module.variable(variable).type);
    if (type) out.push_back(*type);
  }
  return out;
}

std::optional<ShardingRule> rule_in(const stablehlo::Module& module,
                                    const stablehlo::ModuleOp& op) {
  return rule_of_module_op(module, op, ruled_types(module, op.operands),
                           ruled_types(module, op.results));
}

// The rule of the op with this mnemonic in the body of a function, as text.
std::string rule_text(const std::string& arguments, const std::string& body) {
  Result<stablehlo::Module> module =
      stablehlo::Module::parse("func.func @main(" + arguments + ") {\n" + body + "\nreturn\n}\n");
  if (!module.ok()) return module.error().message();
  const stablehlo::ModuleOp& op = module->function("main")->op->regions[0].ops[0];
  std::optional<ShardingRule> rule = rule_in(*module, op);
  return rule ? rule->to_string() : "none";
}

// A rule without the operands of rank 0 at its end: initial values, which primitives have inside.
ShardingRule without_initial_values(const ShardingRule& rule, std::size_t operands) {
  std::vector<TensorFactors> kept = rule.operands();
  while (kept.size() > operands && kept.back().empty()) kept.pop_back();
  return ShardingRule(rule.factors(), kept, rule.results());
}

// What lowering writes for each sample of each primitive, read back: wherever one op stands for one
// node, the rules are the same.
class ReadBack {
 public:
  void check(const OpDef& op) {
    SampleSource source(7);
    for (const OpSample& sample : samples_of(op, source)) check_sample(op, sample);
  }
  std::set<std::string> mnemonics, primitives;

 private:
  void check_sample(const OpDef& op, const OpSample& sample) {
    internal::TraceScope scope;
    std::vector<Tensor> parameters;
    std::vector<Value> leaves;
    for (const HostArray& input : sample.inputs) {
      parameters.push_back(make_parameter(input.type(), std::nullopt, {}));
      leaves.push_back(parameters.back().value());
    }
    Value result = sample.call(parameters).value();
    Program program;
    program.graph = Graph::build(leaves, std::vector{result}, scope.trace());
    std::string text;
    try {
      text = lower(program).text;
    } catch (const Error&) {
      return;  // ops of manual axes need a mesh
    }
    Result<stablehlo::Module> module = stablehlo::Module::parse(text);
    ASSERT_TRUE(module.ok()) << module.error().message() << "\n" << text;
    std::map<std::string, std::vector<const stablehlo::ModuleOp*>> by_place;
    for (const stablehlo::ModuleOp& written : module->function("main")->op->regions[0].ops)
      if (written.mnemonic != "stablehlo.custom_call")  // the layouts of fft
        by_place[module->location_name(written.location)].push_back(&written);
    for (const Node* node : program.graph.nodes()) {
      if (&node->op() != &op) continue;
      const auto& written = by_place["n" + std::to_string(program.graph.number(node))];
      if (written.size() == 1) compare(*node, *module, *written[0], sample.name);
    }
  }

  void compare(const Node& node, const stablehlo::Module& module, const stablehlo::ModuleOp& op,
               const std::string& sample) {
    std::span<const std::string_view> known = ruled_mnemonics();
    bool ruled = std::find(known.begin(), known.end(), op.mnemonic) != known.end() ||
                 op.mnemonic.starts_with("chlo.");
    if (!ruled || node.operands().empty()) return;
    // What changes nothing is written as a reshape, and a pad of nothing as a broadcast.
    if (op.mnemonic == "stablehlo.reshape" && node.op().name != "reshape") return;
    if (op.mnemonic == "stablehlo.broadcast_in_dim" && node.op().name == "pad") return;
    std::optional<ShardingRule> read = rule_in(module, op);
    ASSERT_TRUE(read.has_value()) << op.text;
    auto* rule_of_text = node.op().read.sharding_rule;
    ShardingRule own = (rule_of_text ? rule_of_text : node.op().sharding_rule)(call_of(node));
    EXPECT_EQ(without_initial_values(*read, own.operands().size()).to_string(), own.to_string())
        << node.op().name << ", " << sample << ": " << op.text;
    mnemonics.insert(op.mnemonic);
    primitives.insert(std::string(node.op().name));
  }
};

TEST(ModuleRules, AreThoseOfThePrimitives) {
  ReadBack all;
  for (const OpDef* op : all_ops()) all.check(*op);
  EXPECT_GT(all.primitives.size(), 75u);
  // Every mnemonic of the table is checked, except those that no primitive alone is lowered to.
  const std::set<std::string_view> alone{"sdy.sharding_constraint", "stablehlo.clamp",
                                         "stablehlo.real"};
  for (std::string_view mnemonic : ruled_mnemonics())
    EXPECT_TRUE(all.mnemonics.contains(std::string(mnemonic)) || alone.contains(mnemonic))
        << mnemonic;
}

// As JAX prints them, with the rule of the same op in the generic form, which the test above
// checks.
TEST(ModuleRules, PrettyForms) {
  auto expect_same = [](const char* arguments, const char* pretty, const char* generic) {
    std::string rule = rule_text(arguments, generic);
    EXPECT_NE(rule, "none") << generic;
    EXPECT_EQ(rule_text(arguments, pretty), rule) << pretty;
  };
  expect_same(
      "%a: tensor<2x8x16xf32>, %b: tensor<2x16x4xf32>",
      "%0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] "
      "x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x8x16xf32>, tensor<2x16x4xf32>) -> "
      "tensor<2x8x4xf32>",
      "%0 = \"stablehlo.dot_general\"(%a, %b) <{dot_dimension_numbers = "
      "#stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
      "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : "
      "(tensor<2x8x16xf32>, tensor<2x16x4xf32>) -> tensor<2x8x4xf32>");
  expect_same("%a: tensor<2x8xf32>",
              "%0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x8xf32>) -> tensor<8x2xf32>",
              "%0 = \"stablehlo.transpose\"(%a) <{permutation = array<i64: 1, 0>}> : "
              "(tensor<2x8xf32>) -> tensor<8x2xf32>");
  expect_same("%a: tensor<8xf32>",
              "%0 = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>",
              "%0 = \"stablehlo.broadcast_in_dim\"(%a) <{broadcast_dimensions = array<i64: 1>}> : "
              "(tensor<8xf32>) -> tensor<4x8xf32>");
  expect_same("%a: tensor<16x8xf32>",
              "%0 = stablehlo.slice %a [0:16:2, 1:5] : (tensor<16x8xf32>) -> tensor<8x4xf32>",
              "%0 = \"stablehlo.slice\"(%a) <{start_indices = array<i64: 0, 1>, limit_indices = "
              "array<i64: 16, 5>, strides = array<i64: 2, 1>}> : (tensor<16x8xf32>) -> "
              "tensor<8x4xf32>");
  expect_same("%a: tensor<16x8xf32>, %i: tensor<i32>",
              "%0 = stablehlo.dynamic_slice %a, %i, %i, sizes = [1, 8] : (tensor<16x8xf32>, "
              "tensor<i32>, tensor<i32>) -> tensor<1x8xf32>",
              "%0 = \"stablehlo.dynamic_slice\"(%a, %i, %i) <{slice_sizes = array<i64: 1, 8>}> : "
              "(tensor<16x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>");
  expect_same("%a: tensor<6x8xf32>, %v: tensor<f32>",
              "%0 = stablehlo.pad %a, %v, low = [1, 0], high = [1, 0], interior = [0, 0] : "
              "(tensor<6x8xf32>, tensor<f32>) -> tensor<8x8xf32>",
              "%0 = \"stablehlo.pad\"(%a, %v) <{edge_padding_low = array<i64: 1, 0>, "
              "edge_padding_high = array<i64: 1, 0>, interior_padding = array<i64: 0, 0>}> : "
              "(tensor<6x8xf32>, tensor<f32>) -> tensor<8x8xf32>");
  expect_same("%a: tensor<6x8xf32>",
              "%0 = stablehlo.concatenate %a, %a, dim = 1 : (tensor<6x8xf32>, tensor<6x8xf32>) -> "
              "tensor<6x16xf32>",
              "%0 = \"stablehlo.concatenate\"(%a, %a) <{dimension = 1 : i64}> : "
              "(tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x16xf32>");
  expect_same("%a: tensor<6x8xf32>", "%0 = stablehlo.reverse %a, dims = [1] : tensor<6x8xf32>",
              "%0 = \"stablehlo.reverse\"(%a) <{dimensions = array<i64: 1>}> : (tensor<6x8xf32>) "
              "-> tensor<6x8xf32>");
  expect_same(
      "%a: tensor<2x8x8x3xf32>, %w: tensor<3x3x3x4xf32>",
      "%0 = stablehlo.convolution(%a, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, "
      "1, f], window = {stride = [2, 2], pad = [[1, 1], [0, 1]]} {batch_group_count = 1 : "
      "i64, feature_group_count = 1 : i64} : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) "
      "-> tensor<2x4x4x4xf32>",
      "%0 = \"stablehlo.convolution\"(%a, %w) <{window_strides = array<i64: 2, 2>, padding "
      "= dense<[[1, 1], [0, 1]]> : tensor<2x2xi64>, dimension_numbers = #stablehlo.conv<[b, "
      "0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, "
      "batch_group_count = 1 : i64}> : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> "
      "tensor<2x4x4x4xf32>");
}

TEST(ModuleRules, ReductionsOfSeveral) {
  EXPECT_EQ(rule_text("%a: tensor<8x4xf32>, %b: tensor<8x4xi32>, %i: tensor<f32>, %j: tensor<i32>",
                      "%0:2 = stablehlo.reduce(%a init: %i), (%b init: %j) across dimensions = [1] "
                      ": (tensor<8x4xf32>, tensor<8x4xi32>, tensor<f32>, tensor<i32>) -> "
                      "(tensor<8xf32>, tensor<8xi32>)"),
            "([i, j], [i, j], [], [])->([i], [i]) {i=8, j=4} reduction={j}");
}

TEST(ModuleRules, ScalarsBesideTensors) {
  EXPECT_EQ(rule_text("%p: tensor<i1>, %a: tensor<8xf32>",
                      "%0 = stablehlo.select %p, %a, %a : tensor<i1>, tensor<8xf32>"),
            "([], [i], [i])->([i]) {i=8}");
}

TEST(ModuleRules, CustomCalls) {
  EXPECT_EQ(rule_text("%a: tensor<8x4xf32>",
                      "%0 = stablehlo.custom_call @f(%a) {sdy.sharding_rule = "
                      "#sdy.op_sharding_rule<([i, j])->([i]) {i=8, j=4} reduction={j}, custom>} : "
                      "(tensor<8x4xf32>) -> tensor<8xf32>"),
            "([i, j])->([i]) {i=8, j=4} reduction={j}");
  EXPECT_EQ(rule_text("%a: tensor<8xf32>",
                      "%0 = stablehlo.custom_call @f(%a) : (tensor<8xf32>) -> "
                      "tensor<8xf32>"),
            "none");
}

TEST(ModuleRules, WhatHasNone) {
  const char* a = "%a: tensor<8x4xf32>";
  EXPECT_EQ(rule_text(a, "%0 = mine.op %a : tensor<8x4xf32>"), "none");
  EXPECT_EQ(rule_text(a, "%0 = stablehlo.constant dense<0.0> : tensor<8x4xf32>"), "none");
  // The types do not fit the op.
  EXPECT_EQ(rule_text(a, "%0 = stablehlo.reshape %a : (tensor<8x4xf32>) -> tensor<31xf32>"),
            "none");
  EXPECT_EQ(rule_text(a,
                      "%0 = stablehlo.transpose %a, dims = [1] : (tensor<8x4xf32>) -> "
                      "tensor<4x8xf32>"),
            "none");
  EXPECT_EQ(rule_text(a,
                      "%0 = stablehlo.transpose %a, dims = [1, 7] : (tensor<8x4xf32>) -> "
                      "tensor<4x8xf32>"),
            "none");
  EXPECT_EQ(rule_text(a, "%0 = stablehlo.slice %a [0:99] : (tensor<8x4xf32>) -> tensor<4x8xf32>"),
            "none");
}

}  // namespace
}  // namespace meshard
