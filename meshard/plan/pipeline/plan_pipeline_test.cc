// Tests plan_pipeline() for the CPU plugin's virtual devices, where times are counts of operations.
#include "meshard/plan/pipeline/plan_pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <random>
#include <set>

#include "meshard/base/json_reader.h"
#include "meshard/explain/hlo_testutil.h"
#include "meshard/graph/abstract_tensor.h"
#include "meshard/ops/all.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PlanPipeline : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string reason = why_no_plugin(); !reason.empty())
      GTEST_SKIP() << "no CPU plugin: " << reason;
    options_.explain.compile.use_cache = false;
  }
  // Layer i multiplies by a [16, width] and a [width, 16] weight.
  static PipelineLayers layers(const std::vector<std::int64_t>& widths) {
    std::vector<Tensor> weights;
    for (std::int64_t width : widths) weights.push_back(abstract_tensor({16, width}, DType::f32));
    return pipeline_layers(
        weights, [](const Tensor& x) { return x; },
        [](const Tensor& w, const Tensor& h) { return matmul(matmul(h, w), permute_dims(w)); },
        [](const Tensor& h, const Tensor& x) { return sum(h) + 0.0f * sum(x); });
  }
  static Tensor batch(std::int64_t rows) {
    static const Mesh kAny({{"x", 2}});
    return abstract_tensor({rows, 16}, DType::f32, kAny, P("x", none));
  }

  Target target_ = Target::parse("cpu:4").value();
  PlanPipelineOptions options_;
};

TEST_F(PlanPipeline, BalancesLayersByWhatTheirProgramsTake) {
  // The last layer takes as long as the four others.
  options_ = {.workers = {2}, .microbatches = {4}, .chunks = {1}, .explain = options_.explain};
  options_.moves = 0;
  PipelinePlan plan = plan_pipeline(target_, layers({64, 64, 64, 64, 256}), batch(32), options_);
  ASSERT_EQ(plan.ranking.size(), 3u);
  for (const PlannedPipeline& one : plan.ranking) {
    EXPECT_THAT(one.candidate.layers, ElementsAre(4, 1));
    EXPECT_THAT(one.candidate.axes, ElementsAre(MeshAxis{"x", 2}));
    ASSERT_TRUE(one.report.has_value()) << one.problem;
    EXPECT_TRUE(one.fits());
  }
  EXPECT_EQ(plan.considered, 3u);
}

// All divisions of the layers, judged by their reports.
TEST_F(PlanPipeline, EqualsBruteForce) {
  PipelineLayers model = layers({64, 128, 64, 32, 96});
  options_ = {.workers = {2}, .microbatches = {4}, .chunks = {1}, .explain = options_.explain};
  options_.schedules = {PipelineScheduleKind::kGpipe};
  PipelinePlan plan = plan_pipeline(target_, model, batch(32), options_);
  double least = std::numeric_limits<double>::infinity();
  for (int first = 1; first < model.count; ++first) {
    PipelineCandidate one{PipelineScheduleKind::kGpipe, 2, 1, 4, {{"x", 2}}, {first, 5 - first}};
    least = std::min(least, explain_pipeline(target_, stages_of(one, model, target_),
                                             schedule_of(one), batch(32 / 4), options_.explain)
                                .time());
  }
  EXPECT_DOUBLE_EQ(plan.ranking.front().report->time(), least);
}

TEST_F(PlanPipeline, RanksByTheTimeOfTheReports) {
  options_.most = 6;
  options_.moves = 2;
  PipelinePlan plan =
      plan_pipeline(target_, layers(std::vector<std::int64_t>(4, 64)), batch(32), options_);
  ASSERT_GE(plan.ranking.size(), 4u);
  EXPECT_LE(plan.ranking.size(), options_.most + options_.moves);
  std::set<std::string> seen;
  for (std::size_t i = 0; i < plan.ranking.size(); ++i) {
    const PlannedPipeline& one = plan.ranking[i];
    ASSERT_TRUE(one.report.has_value()) << one.problem;
    EXPECT_TRUE(seen.insert(one.candidate.to_string()).second) << one.candidate.to_string();
    if (i > 0) {
      EXPECT_GE(one.report->time(), plan.ranking[i - 1].report->time());
    }
    EXPECT_EQ(one.report->parts().schedule, schedule_of(one.candidate));
    EXPECT_THAT(plan.reason(i), HasSubstr("bubble"));
  }
  EXPECT_GE(plan.considered, plan.ranking.size());
  // Each of the programs is compiled once, however many candidates have it: a plan for the same
  // candidates again, one by one, finds the same reports.
  const PlannedPipeline& first = plan.ranking.front();
  PipelineReport again = explain_pipeline(
      target_, stages_of(first.candidate, layers(std::vector<std::int64_t>(4, 64)), target_),
      schedule_of(first.candidate),
      abstract_tensor({32 / first.candidate.microbatches, 16}, DType::f32, Mesh({{"x", 2}}),
                      P("x", none)),
      options_.explain);
  EXPECT_DOUBLE_EQ(again.time(), first.report->time());
  EXPECT_DOUBLE_EQ(again.bubble(), first.report->bubble());
}

TEST_F(PlanPipeline, CompilesEqualStagesOnce) {
  options_ = {.workers = {2}, .microbatches = {4}, .chunks = {1}, .explain = options_.explain};
  options_.schedules = {PipelineScheduleKind::kGpipe, PipelineScheduleKind::kOneForwardOneBackward};
  options_.moves = 0;
  PipelinePlan plan =
      plan_pipeline(target_, layers(std::vector<std::int64_t>(6, 64)), batch(32), options_);
  // Of single layers: three forward and three backward passes (first, middle, last). Of the stages,
  // which both schedules share: two of each.
  EXPECT_LE(plan.compiled, 10);
}

TEST_F(PlanPipeline, NeverRecommendsWorseThanTheGivenPipeline) {
  PipelineLayers model = layers({64, 64, 64, 64, 256});
  options_ = {.workers = {2}, .microbatches = {4}, .chunks = {1}, .explain = options_.explain};
  // Unbalanced: everything else is better.
  options_.given = {PipelineScheduleKind::kGpipe, 2, 1, 4, {{"x", 2}}, {1, 4}};
  options_.moves = 0;
  PipelinePlan plan = plan_pipeline(target_, model, batch(32), options_);
  EXPECT_FALSE(plan.given_is_best());
  ASSERT_NE(plan.given(), nullptr);
  EXPECT_EQ(plan.given()->candidate, *options_.given);
  EXPECT_LT(plan.ranking.front().report->time(), plan.given()->report->time());
  EXPECT_THAT(plan.to_string(1), HasSubstr("as given: GPipe, 2 workers of x=2"));
  // The best of the candidates: it stays the first, also if the search finds others as good.
  options_.given = plan.ranking.front().candidate;
  plan = plan_pipeline(target_, model, batch(32), options_);
  EXPECT_TRUE(plan.given_is_best());
  EXPECT_THAT(plan.to_string(), HasSubstr("nothing better than the given pipeline was found"));
}

// From a given pipeline alone, layers move one by one until the stages are equal.
TEST_F(PlanPipeline, MovesLayersAwayFromTheSlowestStage) {
  PipelineLayers model = layers(std::vector<std::int64_t>(6, 64));
  options_ = {.workers = {2}, .most = 0, .explain = options_.explain};
  options_.given = {PipelineScheduleKind::kGpipe, 2, 1, 4, {{"x", 2}}, {1, 5}};
  PipelinePlan plan = plan_pipeline(target_, model, batch(32), options_);
  EXPECT_THAT(plan.ranking.front().candidate.layers, ElementsAre(3, 3));
  EXPECT_TRUE(plan.ranking.back().as_given);
  options_.moves = 1;
  plan = plan_pipeline(target_, model, batch(32), options_);
  EXPECT_THAT(plan.ranking.front().candidate.layers, ElementsAre(2, 4));
}

TEST_F(PlanPipeline, WhatDoesNotFitIsBehindWhatFits) {
  PipelineLayers model = layers(std::vector<std::int64_t>(4, 256));
  options_ = {.workers = {1, 4}, .microbatches = {4}, .chunks = {1}, .explain = options_.explain};
  options_.moves = 1;
  PipelinePlan plan = plan_pipeline(target_, model, batch(32), options_);
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
  for (const PlannedPipeline& one : plan.ranking) {
    std::int64_t total = 0;
    for (const PipelineStageReport& stage : one.report->stages())
      total = std::max(total, stage.memory.total);
    least = std::min(least, total);
    most = std::max(most, total);
  }
  ASSERT_LT(least, most);
  options_.explain.memory = (least + most) / 2;
  plan = plan_pipeline(target_, model, batch(32), options_);
  EXPECT_TRUE(plan.ranking.front().fits());
  EXPECT_FALSE(plan.ranking.back().fits());
  EXPECT_EQ(plan.ranking.back().candidate.workers, 1);  // has all parameters on each device
  EXPECT_THAT(plan.reason(plan.ranking.size() - 1), HasSubstr("stage 0 does not fit"));
  bool has_ended = false;
  for (const PlannedPipeline& one : plan.ranking) {
    EXPECT_FALSE(has_ended && one.fits());
    has_ended |= !one.fits();
  }
  JsonValue json = read_json(to_json(plan, 1)).value();
  EXPECT_EQ(json.find("schema")->text, "meshard.pipeline_plan");
  EXPECT_EQ(json.find("candidates")->elements.size(), plan.ranking.size());
  EXPECT_TRUE(json.find("candidates")->elements.front().find("fits")->truth);
}

TEST_F(PlanPipeline, TriesAllShapesOfSubmeshes) {
  options_.axes = {"x", "y"};
  options_.workers = {2};
  options_.microbatches = {4};
  options_.schedules = {PipelineScheduleKind::kOneForwardOneBackward};
  options_.chunks = {1};
  options_.moves = 0;
  PipelinePlan plan =
      plan_pipeline(target_, layers(std::vector<std::int64_t>(4, 64)), batch(32), options_);
  std::set<std::int64_t> sizes;
  for (const PlannedPipeline& one : plan.ranking) sizes.insert(one.candidate.axes[0].size);
  EXPECT_THAT(sizes, ElementsAre(1, 2));
  // The batch is split along x: with x=1 both devices of a worker do the same.
  EXPECT_EQ(plan.ranking.front().candidate.axes[0].size, 2);
  options_.pinned = {{"x", 1}};
  plan = plan_pipeline(target_, layers(std::vector<std::int64_t>(4, 64)), batch(32), options_);
  for (const PlannedPipeline& one : plan.ranking) EXPECT_EQ(one.candidate.axes[0].size, 1);
}

TEST_F(PlanPipeline, Refuses) {
  PipelineLayers model = layers({64, 64});
  options_.workers = {3};
  EXPECT_TRUE(throws_error([&] { plan_pipeline(target_, model, batch(32), options_); },
                           ErrorCode::kInvalidArgument,
                           {"2 layers", "4 devices", "plan_pipeline_test.cc:"}));
  EXPECT_TRUE(throws_error(
      [&] {
        stages_of({.workers = 2, .axes = {{"x", 2}}, .layers = {2, 1}}, model, target_);
      },
      ErrorCode::kInvalidArgument, {"2,1", "the model's 2 layers"}));
  EXPECT_TRUE(throws_error(
      [&] {
        stages_of({.workers = 2, .axes = {{"stage", 2}}, .layers = {1, 1}}, model, target_);
      },
      ErrorCode::kInvalidArgument, {"`stage`"}));
  EXPECT_TRUE(throws_error(
      [&] { plan_pipeline(target_, model, abstract_tensor({}, DType::f32), options_); },
      ErrorCode::kInvalidArgument, {"no dimension to divide"}));
}

using testing::ElementsAre;

struct Balance {
  double largest = 0, squares = 0;
};

Balance balance_of(const std::vector<double>& costs, const std::vector<int>& counts) {
  Balance made;
  std::size_t next = 0;
  for (int count : counts) {
    double sum = 0;
    for (int i = 0; i < count; ++i) sum += costs[next++];
    made.largest = std::max(made.largest, sum);
    made.squares += sum * sum;
  }
  return made;
}

// Tries all ways to divide the layers.
void all_divisions(int layers, int stages, std::vector<int>& counts,
                   const std::function<void(const std::vector<int>&)>& use) {
  if (stages == 1) {
    counts.push_back(layers);
    use(counts);
    counts.pop_back();
    return;
  }
  for (int first = 1; first <= layers - stages + 1; ++first) {
    counts.push_back(first);
    all_divisions(layers - first, stages - 1, counts, use);
    counts.pop_back();
  }
}

TEST(BalancedLayers, EqualsBruteForce) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    int layers = std::uniform_int_distribution<int>(1, 10)(random);
    int stages = std::uniform_int_distribution<int>(1, layers)(random);
    std::vector<double> costs;
    // Whole numbers, whose sums are exact; few of them, so that there are ties.
    for (int i = 0; i < layers; ++i)
      costs.push_back(std::uniform_int_distribution<int>(0, trial % 2 ? 3 : 100)(random));
    Balance best{std::numeric_limits<double>::infinity(), 0};
    std::vector<int> counts;
    all_divisions(layers, stages, counts, [&](const std::vector<int>& one) {
      Balance now = balance_of(costs, one);
      if (std::pair(now.largest, now.squares) < std::pair(best.largest, best.squares)) best = now;
    });
    std::vector<int> found = balanced_layers(costs, stages);
    ASSERT_EQ(found.size(), static_cast<std::size_t>(stages));
    int sum = 0;
    for (int count : found) {
      EXPECT_GE(count, 1);
      sum += count;
    }
    ASSERT_EQ(sum, layers);
    Balance made = balance_of(costs, found);
    EXPECT_EQ(made.largest, best.largest) << testing::PrintToString(costs) << " into " << stages;
    EXPECT_EQ(made.squares, best.squares) << testing::PrintToString(costs) << " into " << stages;
  }
}

TEST(BalancedLayers, Examples) {
  EXPECT_THAT(balanced_layers(std::vector<double>(8, 1.0), 4), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(balanced_layers(std::vector<double>{1, 1, 1, 1, 1, 1, 4}, 3), ElementsAre(3, 3, 1));
  EXPECT_THAT(balanced_layers(std::vector<double>{3, 1, 1, 1, 4, 2}, 3), ElementsAre(3, 2, 1));
}

TEST(BalancedLayers, Refuses) {
  std::vector<double> costs{1, 2};
  EXPECT_TRUE(throws_error([&] { balanced_layers(costs, 3); }, ErrorCode::kInvalidArgument,
                           {"2 layers", "3 stages", "plan_pipeline_test.cc:"}));
  costs[1] = -1;
  EXPECT_TRUE(throws_error([&] { balanced_layers(costs, 2); }, ErrorCode::kInvalidArgument,
                           {"the cost -1"}));
}

}  // namespace

}  // namespace meshard
