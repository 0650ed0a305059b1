#include "meshard/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/autodiff/grad.h"
#include "meshard/base/cat.h"
#include "meshard/explain/predict/predict.h"
#include "meshard/ops/arithmetic.h"
#include "meshard/ops/composite/matmul.h"
#include "meshard/ops/reduction.h"
#include "meshard/ops/slicing.h"
#include "meshard/ops/trigonometric.h"
#include "meshard/pjrt/plugin_search.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::HasSubstr;

// y = tanh(x v) w, with x over "data" and the given specs for v and w.
std::string mlp_text(std::string_view v_spec, std::string_view w_spec) {
  return cat(
      R"(module @mlp attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["data"=2, "model"=2]>
  func.func public @main(%arg0: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("x"), %arg1: tensor<32x256xf32> {sdy.sharding = #sdy.sharding<@mesh, )",
      v_spec,
      R"(>} loc("p['v']"), %arg2: tensor<256x32xf32> {sdy.sharding = #sdy.sharding<@mesh, )",
      w_spec,
      R"(>} loc("p['w']")) -> (tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<64x32xf32>, tensor<32x256xf32>) -> tensor<64x256xf32>
    %1 = stablehlo.tanh %0 : tensor<64x256xf32>
    %2 = stablehlo.dot_general %1, %arg2, contracting_dims = [1] x [0] : (tensor<64x256xf32>, tensor<256x32xf32>) -> tensor<64x32xf32>
    return %2 : tensor<64x32xf32>
  }
}
)");
}

TEST(PlanOfModule, TheOrderKnowsWhatMoves) {
  Target target = Target::parse("cpu:8").value();
  ModulePlan plan =
      plan_of_module(mlp_text("[{}, {?}]", "[{?}, {}]"), target, {.pinned = {{"model", 4}}});
  EXPECT_EQ(plan.problem.devices, 8);
  EXPECT_THAT(plan.problem.axes, testing::ElementsAre("data", "model"));
  EXPECT_EQ(plan.problem.capacity, std::nullopt);
  bool complete = false;
  std::vector<PlannedCandidate> all = plan_candidates(plan.problem, {}, complete);
  // data=2, model=4; v and w are each split by none, data, model or both.
  ASSERT_EQ(all.size(), 16u);
  EXPECT_EQ(all[0].candidate.to_string(), "data=2,model=4; P(none, none); P(none, none)");
  EXPECT_EQ(all[0].estimate.communication, 0);
  // The rows of x on one device, and all of v and w.
  EXPECT_EQ(all[0].estimate.least_memory, 32 * 32 * 4 + 2 * 32 * 256 * 4);
  for (const PlannedCandidate& one : all)
    if (one.candidate.specs[0] == P(none, "model") && one.candidate.specs[1] == P("model", none)) {
      // v by columns and w by rows: one all-reduce of the result's 32 rows.
      EXPECT_EQ(one.estimate.communication, 32 * 32 * 4);
    }
  std::string text = plan.module.with(all[0].candidate, plan.free);
  EXPECT_THAT(text, HasSubstr("mhlo.num_partitions = 8"));
}

TEST(PlanOfModule, TheModuleAsItIsIsACandidate) {
  Target target = Target::parse("cpu:4").value();
  ModulePlan closed =
      plan_of_module(mlp_text("[{}, {\"model\"}]", "[{\"model\"}, {}]"), target, {.free = {"p*"}});
  ASSERT_TRUE(closed.problem.given.has_value());
  EXPECT_EQ(closed.problem.given->to_string(),
            "data=2,model=2; P(none, \"model\"); P(\"model\", none)");
  EXPECT_TRUE(closed.problem.given_is_candidate);
  ModulePlan open = plan_of_module(mlp_text("[{}, {?}]", "[{?}, {}]"), target);
  EXPECT_EQ(open.problem.given->specs[0], P(none, unconstrained));
  EXPECT_FALSE(open.problem.given_is_candidate) << "the compiler chooses";
}

// The same two products as a step: w is donated, and its next value has its type.
std::string step_text(std::string_view result_sharding) {
  std::string text = mlp_text("[{}, {\"model\"}]", "[{\"model\"}, {}]");
  text.insert(text.find(">} loc(\"p['w']\")") + 1, ", tf.aliasing_output = 1 : i32");
  text.replace(text.find("[{\"data\"}, {}]>}) {"), 17,
               cat("[{\"data\"}, {}]>}, tensor<256x32xf32>", result_sharding, ") "));
  text.replace(text.find("return %2 : tensor<64x32xf32>"), 29,
               "%3 = stablehlo.add %arg2, %arg2 : tensor<256x32xf32>\n    return %2, %3 : "
               "tensor<64x32xf32>, tensor<256x32xf32>");
  return text;
}

TEST(PlanOfModule, ResultsOfAStepAreLaidLikeTheArgumentsThatTheyBecome) {
  Target target = Target::parse("cpu:4").value();
  for (const char* given : {"", " {sdy.sharding = #sdy.sharding<@mesh, [{}, {\"model\"}]>}"}) {
    ModulePlan plan = plan_of_module(step_text(given), target, {.free = {"p['w']"}});
    EXPECT_EQ(plan.module.arguments()[2].next_result, 1u);
    EXPECT_FALSE(plan.problem.given_is_candidate) << "its result is laid otherwise";
    PlanCandidate rows{{{.name = "data", .size = 4}, {.name = "model", .size = 1}},
                       {P("data", none)}};
    EXPECT_EQ(plan.module.specs(rows, plan.free).results[1], P("data", none));
    ModuleTemplate made = ModuleTemplate::parse(plan.module.with(rows, plan.free)).value();
    EXPECT_EQ(made.results()[1].spec, P("data", none));
    EXPECT_EQ(made.results()[0].spec, P("data", none));
  }
}

TEST(PlanOfModule, WhatTheGivenModuleLeavesToTheNextRunCounts) {
  if (!pjrt::find_plugins().first("cpu").ok()) GTEST_SKIP() << "no CPU plugin";
  Target target = Target::parse("cpu:4").value();
  // w comes in by rows over "model" and goes out whole: the next run cuts its rows, which is free.
  // By columns: the next run exchanges its rows and columns, 256 x 32 / 2 floats.
  auto given = [&](const char* sharding) {
    std::string text = step_text(cat(" {jax.result_info = \"result['w']\", ", sharding, "}"));
    // Memory is reused only by a result of the same layout.
    std::string_view donated = ", tf.aliasing_output = 1 : i32";
    text.erase(text.find(donated), donated.size());
    ModulePlan plan = plan_of_module(text, target, {.free = {"p['w']"}});
    EXPECT_EQ(plan.module.arguments()[2].next_result, 1u);
    ProgramReport report = plan.problem.compile_given().value();
    return plan.problem.return_cost(report).bytes;
  };
  EXPECT_EQ(given("sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>"), 0);
  EXPECT_EQ(given("sdy.sharding = #sdy.sharding<@mesh, [{\"model\"}, {}]>"), 0);
  EXPECT_EQ(given("sdy.sharding = #sdy.sharding<@mesh, [{}, {\"model\"}]>"), 256 * 32 / 2 * 4);
}

TEST(PlanOfModule, WhereTheFiguresAreKnownTheTimeDecidesTheOrder) {
  Target target = Target::parse("v5e:2x2").value();
  ModulePlan plan = plan_of_module(mlp_text("[{}, {}]", "[{}, {}]"), target, {.free = {"x"}});
  auto estimate = [&](const PartitionSpec& x) {
    return plan.problem.estimate(
        {{{.name = "data", .size = 4}, {.name = "model", .size = 1}}, {x}});
  };
  // The result is over "data", so that rows over "data" move nothing. Whole rows are cut, after
  // each device has read them. Columns are exchanged.
  EXPECT_EQ(estimate(P("data", none)).communication, 0);
  EXPECT_EQ(estimate(P(none, none)).communication, 0);
  EXPECT_LT(estimate(P("data", none)).seconds, estimate(P(none, none)).seconds);
  EXPECT_GT(estimate(P(none, "data")).communication, 0);
  EXPECT_GT(estimate(P(none, "data")).seconds, estimate(P("data", none)).seconds);
}

TEST(PlanOfModule, MemoryOfPublishedHardwareRulesOut) {
  Target target = Target::parse("v5e:2x2").value();
  ModulePlan plan = plan_of_module(mlp_text("[{}, {?}]", "[{?}, {}]"), target);
  ASSERT_TRUE(plan.problem.capacity.has_value());
  EXPECT_GT(*plan.problem.capacity, std::int64_t{15} << 30);
  EXPECT_LT(*plan.problem.capacity, std::int64_t{17} << 30);
}

TEST(PlanOfModule, WhatIsRefused) {
  Target target = Target::parse("cpu:8").value();
  auto refusal = [&](const PlanModuleOptions& options) {
    try {
      plan_of_module(mlp_text("[{}, {}]", "[{}, {}]"), target, options);
      return std::string("planned");
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("plan_test.cc:"));
      return error.message();
    }
  };
  EXPECT_THAT(refusal({.axes = {"data", "tp"}}), HasSubstr("axis `model`, which is not one of"));
  EXPECT_THAT(refusal({.free = {"q"}}), HasSubstr("no argument matches `q`"));
  EXPECT_EQ(refusal({.axes = {"data", "model", "more"}, .free = {"p*"}}), "planned");
  EXPECT_TRUE(throws_error([&] { plan_of_module("module {}", target); }, ErrorCode::kDataLoss,
                           {"plan_test.cc:", "no function"}));
}

// The C++ interface, with a handwritten report instead of a compiler's.
TEST(Plan, ABuilderIsGivenMeshesAndSpecs) {
  Target target = Target::parse("v5e:2x4").value();
  std::vector<FreeValue> values = {{"w", {DType::f32, Shape{8, 8}}, P(unconstrained, none)}};
  PlanResult found = plan(target, {"x", "y"}, values,
                          [&](const Mesh& mesh, const std::vector<PartitionSpec>& specs) {
                            EXPECT_EQ(mesh.size(), 8);
                            Sharding sharding(mesh, specs.at(0), 2);
                            ProgramReport::Parts parts{.name = "f"};
                            parts.memory = MemoryUse{.arguments = 8 * 8 * 4 / sharding.num_tiles()};
                            return ProgramReport(std::move(parts));
                          });
  // (1, 8) and (8, 1): split or not; (2, 4) and (4, 2): split by none, by either axis, or by both.
  EXPECT_EQ(found.compiled, 2u + 4 + 4 + 2);
  EXPECT_EQ(found.ranking.front().verdict.memory, 8 * 4);
}

// A traced program is estimated by predict(), with the shardings that its values have.
TEST(Plan, ATracedProgramIsEstimated) {
  Target target = Target::parse("cpu:8").value();
  const TensorType v{DType::f32, {32, 256}}, w{DType::f32, {256, 32}};
  std::vector<FreeValue> values = {{"v", v, P(none, unconstrained)},
                                   {"w", w, P(unconstrained, none)}};
  auto mlp = [](Tensor x, Tensor one, Tensor two) { return matmul(tanh(matmul(x, one)), two); };
  auto arguments = [&](const Mesh& mesh, const std::vector<PartitionSpec>& specs) {
    return std::vector{abstract_tensor({64, 32}, DType::f32, mesh, P("data", none)),
                       abstract_tensor(v.shape, v.dtype, mesh, specs.at(0)),
                       abstract_tensor(w.shape, w.dtype, mesh, specs.at(1))};
  };
  auto traced = [&](const Mesh& mesh, const std::vector<PartitionSpec>& specs) {
    std::vector<Tensor> x = arguments(mesh, specs);
    return trace_program(mlp, x[0], x[1], x[2]);
  };
  Mesh mesh({{"data", 2}, {"model", 4}});
  for (const std::vector<PartitionSpec>& specs :
       {std::vector{P(none, none), P(none, none)}, std::vector{P(none, "model"), P("model", none)},
        std::vector{P(none, "model"), P(none, none)},
        std::vector{P(none, "data"), P("model", none)}}) {
    std::vector<Tensor> x = arguments(mesh, specs);
    PlanEstimate estimate = internal::estimate_of_program(traced(mesh, specs), 8);
    EXPECT_EQ(estimate.communication, static_cast<double>(predict(mlp, x[0], x[1], x[2]).bytes()));
  }
  // By hand: columns, then rows, take one all-reduce of the result's 32 rows.
  PlanEstimate halves =
      internal::estimate_of_program(traced(mesh, {P(none, "model"), P("model", none)}), 8);
  EXPECT_EQ(halves.communication, 32 * 32 * 4);
  EXPECT_EQ(halves.least_memory, 32 * 32 * 4 + 2 * 32 * 64 * 4);
}

// The gradients of four equal layers and their argument: the weights stacked, as nn::Layers has
// them, so that they become one loop, or each on its own.
struct LayersToPlan {
  static constexpr std::int64_t kCount = 4;
  Target target = Target::parse("cpu:8").value();

  static Tensor applied(const Tensor& x, const Tensor& v, const Tensor& w) {
    return add(x, matmul(tanh(matmul(x, v)), w));
  }
  static Tensor given(const Mesh& mesh) {
    return abstract_tensor({64, 32}, DType::f32, mesh, P("data", none));
  }

  static std::vector<FreeValue> stacked_values() {
    return {{"v", {DType::f32, {kCount, 32, 256}}, P(none, none, unconstrained)},
            {"w", {DType::f32, {kCount, 256, 32}}, P(none, unconstrained, none)}};
  }
  static TracedProgram stacked(const Mesh& mesh, const std::vector<PartitionSpec>& specs) {
    auto loss = [](const std::pair<std::vector<Tensor>, Tensor>& all) {
      auto [weights, x] = all;
      for (std::int64_t i = 0; i < kCount; ++i)
        x = applied(x, layer_slice(weights[0], i), layer_slice(weights[1], i));
      return sum(multiply(x, x));
    };
    std::vector<Tensor> weights;
    for (std::size_t i = 0; i < 2; ++i)
      weights.push_back(
          abstract_tensor(stacked_values()[i].type.shape, DType::f32, mesh, specs.at(i)));
    return trace_program(grad(loss), std::pair(weights, given(mesh)));
  }

  static std::vector<FreeValue> separate_values() {
    return {{"v", {DType::f32, {32, 256}}, P(none, unconstrained)},
            {"w", {DType::f32, {256, 32}}, P(unconstrained, none)}};
  }
  static TracedProgram separate(const Mesh& mesh, const std::vector<PartitionSpec>& specs) {
    auto loss = [](const std::pair<std::vector<Tensor>, Tensor>& all) {
      auto [weights, x] = all;
      for (std::size_t i = 0; i < weights.size(); i += 2)
        x = applied(x, weights[i], weights[i + 1]);
      return sum(multiply(x, x));
    };
    std::vector<Tensor> weights;
    for (std::int64_t layer = 0; layer < kCount; ++layer)
      for (std::size_t i = 0; i < 2; ++i)
        weights.push_back(
            abstract_tensor(separate_values()[i].type.shape, DType::f32, mesh, specs.at(i)));
    return trace_program(grad(loss), std::pair(weights, given(mesh)));
  }

  // Without the dimension of the layers.
  static std::vector<PartitionSpec> of_a_layer(std::vector<PartitionSpec> specs) {
    for (PartitionSpec& spec : specs) {
      std::vector<DimensionSpec> dimensions(spec.dimensions().begin() + 1, spec.dimensions().end());
      spec = PartitionSpec(std::move(dimensions));
    }
    return specs;
  }
};

TEST(Plan, LayersInALoopAreEstimatedLikeLayersOnTheirOwn) {
  Mesh mesh({{"data", 2}, {"model", 4}});
  ASSERT_THAT(internal::module_text_of(LayersToPlan::stacked(mesh, {P(none), P(none)})),
              HasSubstr("stablehlo.while"));
  auto bytes = [&](const std::vector<PartitionSpec>& specs) {
    double in_a_loop =
        internal::estimate_of_program(LayersToPlan::stacked(mesh, specs), 8).communication;
    double alone = internal::estimate_of_program(
                       LayersToPlan::separate(mesh, LayersToPlan::of_a_layer(specs)), 8)
                       .communication;
    EXPECT_EQ(in_a_loop, alone) << specs[0].to_string() << specs[1].to_string();
    return in_a_loop;
  };
  const double layers = LayersToPlan::kCount, weights = 2 * 32 * 256 * 4, rows = 32 * 32 * 4;
  // Whole weights: their gradients are summed over "data".
  EXPECT_EQ(bytes({P(none, none, none), P(none, none, none)}), layers * weights);
  // v by columns and w by rows: a quarter of the gradients, and a sum of 32 rows in each layer,
  // forward and backward.
  EXPECT_EQ(bytes({P(none, none, "model"), P(none, "model", none)}),
            layers * (weights / 4 + 2 * rows));
}

TEST(Plan, LayersInALoopArePlannedLikeLayersOnTheirOwn) {
  if (!pjrt::find_plugins().first("cpu").ok()) GTEST_SKIP() << "no CPU plugin";
  LayersToPlan layers;
  // Only the most promising candidate is compiled.
  PlanOptions options{.most_compiled = 1};
  PlanResult in_a_loop = plan(layers.target, {"data", "model"}, LayersToPlan::stacked_values(),
                              LayersToPlan::stacked, options);
  PlanResult alone = plan(layers.target, {"data", "model"}, LayersToPlan::separate_values(),
                          LayersToPlan::separate, options);
  ASSERT_TRUE(in_a_loop.anything_fits());
  ASSERT_TRUE(alone.anything_fits());
  const PlanCandidate &best = in_a_loop.ranking[0].candidate, &other = alone.ranking[0].candidate;
  EXPECT_EQ(best.axes, other.axes);
  EXPECT_EQ(LayersToPlan::of_a_layer(best.specs), other.specs);
  EXPECT_NE(other.specs[0], P(none, none)) << "whole weights move more";
}

TEST(Plan, TracedProgramsAreCompiledInTheOrderOfTheirEstimates) {
  if (!pjrt::find_plugins().first("cpu").ok()) GTEST_SKIP() << "no CPU plugin";
  Target target = Target::parse("cpu:8").value();
  const TensorType w{DType::f32, {64, 64}};
  PlanOptions options{.most_compiled = 2};
  auto layer = jit([](Tensor x, Tensor weight) { return tanh(matmul(x, weight)); });
  PlanResult found = plan(
      target, {"data"}, {{"w", w, P(unconstrained, unconstrained)}},
      [&](const Mesh& mesh, const std::vector<PartitionSpec>& specs) {
        return trace_program(layer, abstract_tensor({16, 64}, DType::f32, mesh, P("data", none)),
                             abstract_tensor(w.shape, w.dtype, mesh, specs.at(0)));
      },
      options);
  ASSERT_EQ(found.compiled, 2u);
  // A whole weight moves nothing; the other two gather it.
  EXPECT_EQ(found.ranking[0].candidate.specs[0], P(none, none));
  EXPECT_EQ(found.ranking[0].estimate.communication, 0);
  EXPECT_EQ(found.ranking[1].estimate.communication, 64 * 64 * 4);
  EXPECT_EQ(found.ranking[1].verdict.collective_bytes, 64 * 64 * 4);
}

}  // namespace
}  // namespace meshard
