#include "meshard/plan/sharding_trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/pjrt/plugin_search.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::HasSubstr;

constexpr const char* kTriedStep =
    R"(module @step attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=2, "model"=4]>
  func.func public @main(%arg0: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("x"), %arg1: tensor<32x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>, tf.aliasing_output = 1 : i32} loc("p['w1']"), %arg2: tensor<32x12xf32> loc("p['w2']")) -> (tensor<64x12xf32> {jax.result_info = "result[0]"}, tensor<32x12xf32> {jax.result_info = "result[1]['w1']", sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<64x32xf32>, tensor<32x12xf32>) -> tensor<64x12xf32>
    %1 = stablehlo.add %arg1, %arg2 : tensor<32x12xf32>
    return %0, %1 : tensor<64x12xf32>, tensor<32x12xf32>
  }
}
)";

ShardingTrial parsed(std::string_view text) { return ShardingTrial::parse(text).value(); }

TEST(ShardingTrial, Notations) {
  std::vector<ShardingTrial::Change> changes = {{"w", P("data", none)}};
  for (const char* text : {"w: P(data, none)", " w :P( \"data\" , none ) ;", "w: P('data', None)"})
    EXPECT_EQ(parsed(text).changes, changes) << text;
  EXPECT_EQ(parsed("w: P({data, model}, ?)").changes[0].spec, P({"data", "model"}, unconstrained));
  EXPECT_EQ(parsed("w: P((data, model), none)").changes[0].spec, P({"data", "model"}, none));
  EXPECT_EQ(parsed("w: P(('data',), None)").changes[0].spec, P("data", none));
  EXPECT_EQ(parsed("w: P(model:(2)2)").changes[0].spec, P(AxisRef("model", 2, 2)));
  ShardingTrial two = parsed("p['a:b']: P(data); result 0: P()");
  EXPECT_EQ(two.changes[0].value, "p['a:b']");
  EXPECT_EQ(two.changes[1].value, "result 0");
  EXPECT_EQ(two.to_string(), "p['a:b']: P(\"data\"); result 0: P()");
  for (const char* text : {"", ";", "w", "w: data", ": P(data)", "w: P(data", "w: P(data))"})
    EXPECT_FALSE(ShardingTrial::parse(text).ok()) << text;
}

BoundarySpecs tried(std::string_view text, std::vector<MeshAxis> axes = {}) {
  ShardingTrial trial = text.empty() ? ShardingTrial() : parsed(text);
  trial.axes = std::move(axes);
  return ModuleTemplate::parse(apply(trial, ModuleTemplate::parse(kTriedStep).value()).value())
      ->given();
}

TEST(ShardingTrial, ReplacesShardings) {
  BoundarySpecs specs = tried("x: P(none, data); 2: P(data)");
  EXPECT_EQ(specs.arguments[0], P(none, "data"));
  EXPECT_EQ(specs.arguments[1], P(none, "model"));
  EXPECT_EQ(specs.arguments[2], P("data", none));
  EXPECT_EQ(specs.results[0], std::nullopt);
  EXPECT_EQ(tried("result 0: P(none, model)").results[0], P(none, "model"));
  specs = tried("p[*]: P(model, none)");
  EXPECT_EQ(specs.arguments[1], P("model", none));
  EXPECT_EQ(specs.arguments[2], P("model", none));
}

TEST(ShardingTrial, AResultThatIsTheArgumentOfTheNextRunFollows) {
  EXPECT_EQ(tried("p['w1']: P(data, none)").results[1], P("data", none));
  EXPECT_EQ(tried("p['w1']: P(data, none); result 1: P(none, model)").results[1], P(none, "model"));
}

TEST(ShardingTrial, AnotherMesh) {
  ModuleTemplate module = ModuleTemplate::parse(kTriedStep).value();
  ShardingTrial trial{.axes = {{.name = "data", .size = 4}, {.name = "model", .size = 2}}};
  std::string text = apply(trial, module).value();
  EXPECT_THAT(text, HasSubstr("sdy.mesh @mesh = <[\"data\"=4, \"model\"=2]>"));
  // Without one, the module's own stays as it is written.
  EXPECT_EQ(apply({}, module).value(), kTriedStep);
}

TEST(ShardingTrial, WhatIsRefused) {
  ModuleTemplate module = ModuleTemplate::parse(kTriedStep).value();
  auto refusal = [&](std::string_view text, std::vector<MeshAxis> axes = {}) {
    ShardingTrial trial = parsed(text);
    trial.axes = std::move(axes);
    Result<std::string> applied = apply(trial, module);
    return applied.ok() ? "applied" : applied.error().message();
  };
  EXPECT_THAT(refusal("p['w3']: P(data)"),
              HasSubstr("no argument matches `p['w3']`; the nearest names are p['w1'], p['w2']"));
  EXPECT_THAT(refusal("7: P(data)"), HasSubstr("the number of arguments is 3"));
  EXPECT_THAT(refusal("result 2: P(data)"), HasSubstr("numbers 0 to 1"));
  EXPECT_THAT(refusal("result x: P(data)"), HasSubstr("numbers 0 to 1"));
  EXPECT_THAT(refusal("x: P(dta)"), HasSubstr("uses axis \"dta\", but the mesh is data=2,model=4"));
  EXPECT_THAT(refusal("x: P(data, data)"), HasSubstr("twice"));
  EXPECT_THAT(refusal("x: P(data, none, none)"), HasSubstr("has 3 entries for 2 dimensions"));
  EXPECT_THAT(refusal("1: P(none, {data, model})"),
              HasSubstr("argument 1 p['w1'] f32[32,12]: P(none, {\"data\", \"model\"}) does not "
                        "divide it: dimension 1 of size 12 cannot be split into 8 equal parts"));
  // w1, which is not changed, has 12 columns.
  EXPECT_THAT(refusal("x: P(data)", {{.name = "data", .size = 1}, {.name = "model", .size = 8}}),
              HasSubstr("argument 1 p['w1']"));
}

TEST(ShardingTrial, BothProgramsAreCompiled) {
  if (!pjrt::find_plugins().first("cpu").ok()) GTEST_SKIP() << "no CPU plugin";
  Target target = Target::parse("cpu:8").value();
  // The product sums over the rows of w1, which are split: an all-reduce of 32 rows of 12.
  TriedShardings found =
      try_shardings(kTriedStep, target, parsed("p['w1']: P(model); result 0: P(data)"));
  EXPECT_TRUE(found.before.collectives().empty());
  ASSERT_EQ(found.after.collectives().size(), 1u);
  EXPECT_EQ(found.after.collectives()[0].bytes(), 32 * 12 * 4);
  EXPECT_EQ(found.diff.before.collectives, 0);
  EXPECT_EQ(found.diff.after.collectives, 1);
  EXPECT_TRUE(throws_error([&] { try_shardings(kTriedStep, target, parsed("q: P(data)")); },
                           ErrorCode::kInvalidArgument, {"sharding_trial_test.cc:", "`q`"}));
}

}  // namespace
}  // namespace meshard
