#include "meshard/plan/module_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/base/cat.h"
#include "meshard/base/whole_file.h"

namespace meshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kStep =
    R"(module @jit_step attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["dp"=4, "tp"=2]> {stablehlo.mesh = {axes = [{name = "dp", size = 4 : i64}]}} loc(#loc)
  func.func public @main(%arg0: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"dp"}, {}]>} loc("x"), %arg1: tensor<32x64xbf16> {jax.arg_info = "p['w']", sdy.sharding = #sdy.sharding<@mesh, [{}, {?}]>, tf.aliasing_output = 1 : i32}, %arg2: tensor<32x64xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}]>, tf.aliasing_output = 2 : i32} loc("m['w']"), %arg3: tensor<f32> loc("a, \"b\" -> ([<")) -> (tensor<f32> {jax.result_info = "loss"}, tensor<32x64xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, tensor<32x64xbf16>) {
    return %0 : tensor<f32>
  }
}
)";

PlanCandidate step_candidate() {
  return {{{.name = "dp", .size = 2}, {.name = "tp", .size = 8}}, {P(none, "tp")}};
}

TEST(ModuleTemplate, ReadsValues) {
  ModuleTemplate read = ModuleTemplate::parse(kStep).value();
  ASSERT_EQ(read.arguments().size(), 4u);
  EXPECT_EQ(read.arguments()[0].name, "x");
  EXPECT_EQ(read.arguments()[0].type->to_string(), "f32[16,32]");
  EXPECT_EQ(read.arguments()[0].spec, P("dp", none));
  EXPECT_EQ(read.arguments()[1].name, "p['w']");
  EXPECT_EQ(read.arguments()[1].aliased_result, 1u);
  EXPECT_EQ(read.arguments()[3].name, "a, \"b\" -> ([<");
  EXPECT_EQ(read.arguments()[3].type->to_string(), "f32[]");
  ASSERT_EQ(read.results().size(), 3u);
  EXPECT_EQ(read.results()[0].name, "loss");
  EXPECT_EQ(read.results()[1].spec, P(none, none));
  ASSERT_EQ(read.axes().size(), 2u);
  EXPECT_EQ(read.axes()[1].size, 2);
  EXPECT_TRUE(read.pinned().empty());
}

TEST(ModuleTemplate, OpenDimensionsAreFreeAndGoTogether) {
  ModuleTemplate read = ModuleTemplate::parse(kStep).value();
  FreeArguments open_ones = read.free({}).value();
  ASSERT_EQ(open_ones.values.size(), 1u);
  EXPECT_EQ(open_ones.values[0].name, "p['w']");
  EXPECT_THAT(open_ones.arguments[0], ElementsAre(1u, 2u));
  FreeArguments named = read.free({"x", "1"}).value();
  ASSERT_EQ(named.values.size(), 3u);  // argument 2 is not entirely free
  EXPECT_EQ(named.values[0].spec, P(unconstrained, unconstrained));
  EXPECT_EQ(read.free({"*'w']"}).value().values[0].spec, P(unconstrained, unconstrained));
  EXPECT_THAT(read.free({"y"}).error().message(), HasSubstr("no argument matches `y`"));
  EXPECT_THAT(read.free({"9"}).error().message(), HasSubstr("number of arguments is 4"));
}

TEST(ModuleTemplate, KeysAreEqualIfOnlyTheNamesOfAxesDiffer) {
  ModuleTemplate read = ModuleTemplate::parse(kStep).value();
  FreeArguments free = read.free({"*"}).value();
  ASSERT_EQ(free.values.size(), 2u);  // x; p['w'] and m['w']
  auto key = [&](std::int64_t dp, std::int64_t tp, const PartitionSpec& x, const PartitionSpec& w) {
    return read.program_key({{{.name = "dp", .size = dp}, {.name = "tp", .size = tp}}, {x, w}},
                            free);
  };
  EXPECT_EQ(key(8, 1, P("dp", none), P(none, "dp")), key(1, 8, P("tp", none), P(none, "tp")));
  EXPECT_EQ(key(8, 1, P("dp", "tp"), P(none, "dp")), key(8, 1, P("dp", none), P(none, "dp")));
  EXPECT_NE(key(8, 1, P("dp", none), P(none, "dp")), key(1, 8, P("tp", none), P("tp", none)));
  EXPECT_NE(key(8, 1, P("dp", none), P(none, "dp")), key(2, 4, P("tp", none), P(none, "tp")));
  EXPECT_NE(key(2, 4, P("dp", none), P(none, "dp")), key(2, 4, P("tp", none), P(none, "tp")));
  EXPECT_NE(key(2, 4, P("dp", none), P("dp", "tp")), key(2, 4, P("dp", none), P("tp", "dp")));
  // Inside, the module names an axis.
  std::string text(kStep);
  text.replace(
      text.find("    return %0"), 0,
      "    %1 = sdy.sharding_constraint %arg0 <@mesh, [{\"dp\"}, {}]> : tensor<16x32xf32>\n");
  read = ModuleTemplate::parse(text).value();
  EXPECT_NE(key(8, 1, P("dp", none), P(none, "dp")), key(1, 8, P("tp", none), P(none, "tp")));
}

TEST(ModuleTemplate, TheTextForACandidate) {
  ModuleTemplate read = ModuleTemplate::parse(kStep).value();
  FreeArguments free = read.free({}).value();
  std::string text = read.with(step_candidate(), free);
  EXPECT_THAT(text, HasSubstr("mhlo.num_partitions = 16 : i32, mhlo.num_replicas = 1"));
  EXPECT_THAT(text,
              HasSubstr("sdy.mesh @mesh = <[\"dp\"=2, \"tp\"=8]> {stablehlo.mesh = {axes = "
                        "[{name = \"dp\", size = 2 : i64}, {name = \"tp\", size = 8 : i64}]}} "
                        "loc(#loc)\n"));
  EXPECT_THAT(text, Not(HasSubstr("{?}")));
  ModuleTemplate again = ModuleTemplate::parse(text).value();
  EXPECT_EQ(again.arguments()[0].spec, P("dp", none));
  EXPECT_EQ(again.arguments()[1].spec, P(none, "tp"));
  EXPECT_EQ(again.arguments()[2].spec, P(none, "tp"));
  EXPECT_EQ(again.arguments()[3].spec, std::nullopt);
  // Results that reuse these arguments' memory get their shardings, even the one without any.
  EXPECT_EQ(again.results()[1].spec, P(none, "tp"));
  EXPECT_EQ(again.results()[2].spec, P(none, "tp"));
  EXPECT_EQ(again.results()[0].spec, std::nullopt);
  EXPECT_EQ(again.arguments()[1].name, "p['w']");
  EXPECT_EQ(again.with(step_candidate(), free), text);
}

TEST(ModuleTemplate, MeshesThatDoNotSuitWhatIsFixed) {
  ModuleTemplate read = ModuleTemplate::parse(kStep).value();
  FreeArguments free = read.free({}).value();
  auto suits = [&](std::int64_t dp, std::int64_t tp) {
    return read.suits({{.name = "dp", .size = dp}, {.name = "tp", .size = tp}}, free);
  };
  EXPECT_TRUE(suits(16, 1));
  EXPECT_TRUE(suits(2, 8));
  EXPECT_FALSE(suits(32, 1));  // x has 16 rows
  EXPECT_FALSE(suits(3, 1));
}

TEST(ModuleTemplate, AModuleWithoutAMeshGetsOne) {
  ModuleTemplate read =
      ModuleTemplate::parse(
          "module {\n  func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<8xf32> "
          "{}) -> tensor<8xf32> {\n    return %arg0 : tensor<8xf32>\n  }\n}\n")
          .value();
  FreeArguments free = read.free({"0", "1"}).value();
  std::string text = read.with({{{.name = "x", .size = 4}}, {P("x"), P(none)}}, free);
  EXPECT_EQ(text,
            "module {\n  sdy.mesh @mesh = <[\"x\"=4]>\n  func.func @main(%arg0: tensor<8xf32> "
            "{sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}, %arg1: tensor<8xf32> "
            "{sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> tensor<8xf32> {\n    return %arg0 : "
            "tensor<8xf32>\n  }\n}\n");
}

TEST(ModuleTemplate, SizesThatTheTextDependsOnArePinned) {
  std::string text = kStep;
  std::string call = "    %9 = sdy.manual_computation(%arg0) manual_axes={\"tp\"} (%b: i32)\n";
  text.insert(text.find("    return"), call);
  EXPECT_EQ(ModuleTemplate::parse(text)->pinned(),
            (std::map<std::string, std::int64_t>{{"tp", 2}}));
  text.insert(text.find("    return"), "    \"all_reduce\"() {replica_groups = dense<0>}\n");
  EXPECT_EQ(ModuleTemplate::parse(text)->pinned(),
            (std::map<std::string, std::int64_t>{{"dp", 4}, {"tp", 2}}));
}

// As JAX 0.12 writes a shard_map with a psum: two equal meshes, and groups along axes.
constexpr std::string_view kGroupsAlongAxes =
    R"(module @jit_g attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=2, "model"=4]> {stablehlo.mesh = {axes = [{name = "data", size = 2 : i64}, {name = "model", size = 4 : i64}]}}
  sdy.mesh @mesh_0 = <["data"=2, "model"=4]> {stablehlo.mesh = {axes = [{name = "data", size = 2 : i64}, {name = "model", size = 4 : i64}]}}
  func.func public @main(%arg0: tensor<16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>} loc("x")) -> (tensor<16x16xf32>) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"data"}, {"model"}]>] out_shardings=[<@mesh, [{"data"}, {}]>] manual_axes={"model"} (%arg1: tensor<16x16xf32>) {
      %1 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh_0, axes = [#stablehlo.axis_ref<name = "model">]>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
        %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
        stablehlo.return %2 : tensor<f32>
      }) : (tensor<16x16xf32>) -> tensor<16x16xf32>
      sdy.return %1 : tensor<16x16xf32>
    } : (tensor<16x64xf32>) -> tensor<16x16xf32>
    return %0 : tensor<16x16xf32>
  }
}
)";

TEST(ModuleTemplate, EqualMeshesAreOneMesh) {
  ModuleTemplate read = ModuleTemplate::parse(std::string(kGroupsAlongAxes)).value();
  EXPECT_EQ(read.axes(), (std::vector<MeshAxis>{{"data", 2}, {"model", 4}}));
  // Groups along an axis list no devices: the sizes of other axes are free.
  EXPECT_EQ(read.pinned(), (std::map<std::string, std::int64_t>{{"model", 4}}));
  FreeArguments free = read.free({"x"}).value();
  std::string text = read.with(PlanCandidate{{{"data", 4}, {"model", 4}}, {P("data", none)}}, free);
  constexpr std::string_view kMesh =
      "= <[\"data\"=4, \"model\"=4]> {stablehlo.mesh = {axes = [{name = \"data\", size = 4 : i64}, "
      "{name = \"model\", size = 4 : i64}]}}\n";
  EXPECT_THAT(text, HasSubstr(cat("@mesh ", kMesh)));
  EXPECT_THAT(text, HasSubstr(cat("@mesh_0 ", kMesh)));
  EXPECT_THAT(text, HasSubstr("@mesh, [{\"data\"}, {}]>} loc(\"x\")"));
}

TEST(ModuleTemplate, AnEntryOfAnyName) {
  std::string text = kStep;
  text.replace(text.find("@main"), 5, "@\"my step\"");
  EXPECT_EQ(ModuleTemplate::parse(text)->arguments().size(), 4u);
  text.insert(text.rfind('}'), "func.func @other() {\n    return\n  }\n");
  EXPECT_THAT(ModuleTemplate::parse(text).error().message(),
              HasSubstr("several public functions: `my step`, `other`"));
  EXPECT_EQ(ModuleTemplate::parse(text, "my step")->arguments().size(), 4u);
}

TEST(ModuleTemplate, ReadsExports) {
  std::string file =
      read_whole_file(cat(MESHARD_GOLDEN, "/exported/run/train_donated.bin")).value();
  ModuleTemplate read = ModuleTemplate::parse(file).value();
  ASSERT_EQ(read.arguments().size(), 5u);
  EXPECT_EQ(read.arguments()[2].spec, P(none, "y"));
  EXPECT_EQ(read.axes().size(), 2u);
  std::string several = read_whole_file(cat(MESHARD_GOLDEN, "/exported/run/platforms.bin")).value();
  EXPECT_THAT(ModuleTemplate::parse(several).error().message(), HasSubstr("exported for tpu, cpu"));
}

TEST(ModuleTemplate, WhatCannotBeRead) {
  auto refusal = [](std::string text) {
    Result<ModuleTemplate> read = ModuleTemplate::parse(std::move(text));
    return read.ok() ? std::string("read") : read.error().message();
  };
  EXPECT_THAT(refusal(""), HasSubstr("no function"));
  EXPECT_THAT(refusal("ML\xefR\x06"), HasSubstr("bytecode"));
  EXPECT_THAT(refusal("func.func @f()"), HasSubstr("no function"));
  EXPECT_THAT(refusal("func.func @main(%arg0: tensor<8xf32>"), HasSubstr("is not closed"));
  EXPECT_THAT(refusal("func.func @main(%arg0: tensor<8xf32>} )"), HasSubstr("unmatched `}`"));
  std::string text = kStep;
  text.replace(text.find("{?}"), 3, "{\"zz\"}");
  EXPECT_THAT(refusal(text), HasSubstr("zz"));
  text = kStep;
  text.insert(text.find("  func"), "  sdy.mesh @other = <[\"a\"=8]>\n");
  EXPECT_THAT(refusal(text), HasSubstr("meshes that differ"));
}

// Truncated texts and changed bytes never cause a crash or a hang.
TEST(ModuleTemplate, DamagedTexts) {
  std::string text = kStep;
  for (std::size_t cut = 0; cut < text.size(); cut += 3)
    (void)ModuleTemplate::parse(text.substr(0, cut)).ok();
  for (std::size_t at = 0; at < text.size(); ++at)
    for (char c : {'<', '"', '}', '\0', ','}) {
      std::string damaged = text;
      damaged[at] = c;
      (void)ModuleTemplate::parse(damaged).ok();
    }
}

TemplateValue named(std::string name, Shape shape) {
  TemplateValue value;
  value.name = std::move(name);
  value.type = TensorType{DType::f32, std::move(shape)};
  return value;
}

std::vector<std::optional<std::size_t>> found(std::vector<TemplateValue> arguments,
                                              const std::vector<TemplateValue>& results,
                                              std::vector<bool> donors = {}) {
  donors.resize(arguments.size());
  find_next_results(arguments, donors, results);
  std::vector<std::optional<std::size_t>> numbers;
  for (const TemplateValue& argument : arguments) numbers.push_back(argument.next_result);
  return numbers;
}

using Numbers = std::vector<std::optional<std::size_t>>;
constexpr auto kNone = std::nullopt;

TEST(NextResults, ByMemory) {
  std::vector<TemplateValue> arguments = {named("a", {4}), named("b", {4})};
  arguments[0].aliased_result = 1;
  arguments[1].aliased_result = 7;  // there is no such result
  EXPECT_EQ(found(arguments, {named("", {8}), named("", {4})}), (Numbers{1, kNone}));
}

TEST(NextResults, ByTheNamesOfJax) {
  std::vector<TemplateValue> arguments = {named("p['b']", {8}), named("p['w']", {4, 8}),
                                          named("m['w']", {4, 8}), named("x", {2, 4})};
  // As JAX names the results of `return loss, p, m`.
  EXPECT_EQ(found(arguments, {named("result[0]", {}), named("result[1]['b']", {8}),
                              named("result[1]['w']", {4, 8}), named("result[2]['w']", {4, 8})}),
            (Numbers{1, 2, 3, kNone}));
  // As older versions do, and of `return p`.
  EXPECT_EQ(found(arguments, {named("[0]['w']", {4, 8}), named("[1]['w']", {4, 8})}),
            (Numbers{kNone, 0, 1, kNone}));
  EXPECT_EQ(found({named("p['w']", {4, 8})}, {named("result['w']", {4, 8})}), (Numbers{0}));
  EXPECT_EQ(found({named("p[0]", {4, 8}), named("p[1]", {4, 8})},
                  {named("result[0][0]", {4, 8}), named("result[0][1]", {4, 8})}),
            (Numbers{0, 1}));
  // Another type is another value.
  EXPECT_EQ(found({named("p['w']", {4, 8})}, {named("result['w']", {8, 4})}), (Numbers{kNone}));
}

TEST(NextResults, ByDonation) {
  std::vector<TemplateValue> arguments = {named("x", {4}), named("y", {8}), named("z", {4})};
  std::vector<TemplateValue> results = {named("", {2}), named("", {4}), named("", {4})};
  EXPECT_EQ(found(arguments, results, {true, false, true}), (Numbers{1, kNone, 2}));
  EXPECT_EQ(found(arguments, results), (Numbers{kNone, kNone, 2}));  // by position
}

TEST(NextResults, APositionCountsOnlyWithoutASharding) {
  std::vector<TemplateValue> results = {named("", {4})};
  EXPECT_EQ(found({named("x", {4})}, results), (Numbers{0}));
  results[0].spec = P("x");
  EXPECT_EQ(found({named("x", {4})}, results), (Numbers{kNone}));
  EXPECT_EQ(found({named("x", {})}, {named("", {})}), (Numbers{kNone}));
}

}  // namespace

}  // namespace meshard
