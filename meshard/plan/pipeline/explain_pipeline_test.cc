// Tests explain_pipeline() for the CPU plugin's virtual devices, and for TPUs where their compiler
// is installed. Expected bytes are counted by hand, expected bubbles are the formulas of the
// schedules' papers.
#include "meshard/plan/pipeline/explain_pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/base/json_reader.h"
#include "meshard/explain/explain.h"
#include "meshard/explain/hlo_testutil.h"
#include "meshard/graph/abstract_tensor.h"
#include "meshard/ops/all.h"
#include "meshard/pipeline/schedule/schedule.h"
#include "meshard/pipeline/schedule/timeline.h"
#include "meshard/runtime/runtime.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::Each;
using testing::HasSubstr;

class ExplainPipeline : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string reason = why_no_plugin(); !reason.empty())
      GTEST_SKIP() << "no CPU plugin: " << reason;
    options_.compile.use_cache = false;
  }
  // Stages of one product each: x[rows, n] · w[n, n]. The last one has only the loss besides.
  std::vector<PipelineStage> products(int stages, std::int64_t n, std::int64_t devices = 2) const {
    Mesh mesh({{"stage", stages}, {"x", devices}});
    std::vector<PipelineStage> all;
    for (int s = 0; s < stages; ++s) {
      Mesh own = *mesh.submesh({"x"}, s * devices);
      Tensor w = abstract_tensor({n, n}, DType::f32, own, P(none, none));
      if (s == 0)
        all.emplace_back(own, w,
                         [](const Tensor& weight, const Tensor& x) { return matmul(x, weight); });
      else if (s + 1 < stages)
        all.emplace_back(own, w, [](const Tensor& weight, const Tensor& h, const Tensor&) {
          return matmul(h, weight);
        });
      else
        all.emplace_back(own, w, [](const Tensor& weight, const Tensor& h, const Tensor&) {
          return sum(matmul(h, weight));
        });
    }
    return all;
  }
  Tensor rows(const std::vector<PipelineStage>& stages, std::int64_t count, std::int64_t n) const {
    return abstract_tensor({count, n}, DType::f32, stages[0].mesh(), P("x", none));
  }

  Target target_ = Target::parse("cpu:8").value();
  ExplainPipelineOptions options_;
};

// With measured times that are equal, the bubble is that of the papers.
TEST_F(ExplainPipeline, EqualStagesHaveTheBubbleOfTheFormulas) {
  std::vector<PipelineStage> stages = products(4, 16);
  options_.times = {{.forward = 1, .input_gradient = 1, .weight_gradient = 1}};
  const int p = 4, m = 6;
  for (const PipelineSchedule& schedule : {gpipe(p, m), one_forward_one_backward(p, m)}) {
    PipelineReport report =
        explain_pipeline(target_, stages, schedule, rows(stages, 8, 16), options_);
    // A backward action is one program: its time is the sum of both gradients.
    EXPECT_DOUBLE_EQ(report.time(), 3.0 * (m + p - 1)) << schedule.name();
    EXPECT_NEAR(report.bubble(), (p - 1.0) / (m + p - 1), 1e-12) << schedule.name();
    EXPECT_NEAR(report.formula_bubble(), (p - 1.0) / (m + p - 1), 1e-12) << schedule.name();
    EXPECT_TRUE(report.times_known());
  }
  PipelineReport report =
      explain_pipeline(target_, stages, zero_bubble(p, m), rows(stages, 8, 16), options_);
  EXPECT_NEAR(report.bubble(), (p - 1.0) / (3 * m + p - 1), 1e-12);
}

// Without figures of the hardware, time is counted in operations: a product of [4, 16] rows on each
// device and [16, 16] has 2 * 4 * 16 * 16, the backward pass two of them.
TEST_F(ExplainPipeline, CountsOperations) {
  std::vector<PipelineStage> stages = products(3, 16);
  PipelineReport report = explain_pipeline(target_, stages, one_forward_one_backward(3, 4),
                                           rows(stages, 8, 16), options_);
  EXPECT_FALSE(report.times_known());
  const double product = 2 * 4 * 16 * 16;
  EXPECT_EQ(report.stages()[1].times.forward, product);
  EXPECT_GE(report.stages()[1].times.input_gradient, 2 * product);
  EXPECT_LT(report.stages()[1].times.input_gradient, 2.5 * product);
  EXPECT_EQ(report.stages()[1].times.update, 0);
  double most = 0;
  for (const PipelineStageReport& one : report.stages()) {
    EXPECT_DOUBLE_EQ(one.busy, 4 * (one.times.forward + one.times.input_gradient));
    most = std::max(most, one.busy);
  }
  EXPECT_EQ(report.stages()[static_cast<std::size_t>(report.slowest())].busy, most);
  EXPECT_THAT(report.parts().notes,
              testing::ElementsAre(HasSubstr("figures of cpu:8 are unknown")));
  EXPECT_THAT(picture(report.timeline()), HasSubstr("worker 2"));
}

TEST_F(ExplainPipeline, CountsMemoryByHand) {
  constexpr std::int64_t kSize = 32, kBatch = 8, kFloat = 4;
  std::vector<PipelineStage> stages = products(2, kSize);
  options_.pipeline.optimizer = optim::Adam{};
  PipelineReport report = explain_pipeline(target_, stages, one_forward_one_backward(2, 4),
                                           rows(stages, kBatch, kSize), options_);
  const std::int64_t weights = kSize * kSize * kFloat;
  for (const PipelineStageReport& one : report.stages()) {
    EXPECT_EQ(one.memory.parameters, weights);
    EXPECT_EQ(one.memory.gradients, weights);
    // Two moments, and a number of steps.
    EXPECT_GE(one.memory.optimizer_state, 2 * weights);
    EXPECT_LE(one.memory.optimizer_state, 2 * weights + 16);
    EXPECT_TRUE(one.fits());
    EXPECT_FALSE(one.memory.capacity.has_value());
  }
  // Each device keeps half of the rows of the stage's input, of two microbatches and of one.
  const std::int64_t input = kBatch / 2 * kSize * kFloat;
  const PipelineStageMemory &first = report.stages()[0].memory, &last = report.stages()[1].memory;
  EXPECT_EQ(first.activations_of_microbatch, input);
  EXPECT_EQ(first.kept_microbatches, 2);
  EXPECT_EQ(first.activations, 2 * input);
  EXPECT_EQ(last.activations_of_microbatch, input);
  EXPECT_EQ(last.activations, input);
  EXPECT_EQ(report.stages()[0].programs.back().work, PipelineWork::kUpdate);
  for (const PipelineStageReport& one : report.stages()) {
    const PipelineStageMemory& memory = one.memory;
    const std::int64_t always = memory.parameters + memory.gradients + memory.optimizer_state;
    EXPECT_GE(memory.total, always + memory.activations);
    // At the end of a step, old and new parameters and moments are there together.
    EXPECT_GE(memory.total, always + 2 * weights);
  }
  // GPipe keeps all four.
  report = explain_pipeline(target_, stages, gpipe(2, 4), rows(stages, kBatch, kSize), options_);
  EXPECT_EQ(report.stages()[0].memory.activations, 4 * input);
  EXPECT_EQ(report.stages()[1].memory.activations, 4 * input);
}

// What a pipeline on real devices has kept is what was explained.
TEST_F(ExplainPipeline, EqualsWhatAPipelineKeeps) {
  install_runtime();
  if (runtime_client().device_count() < 8) GTEST_SKIP() << "needs 8 devices";
  constexpr std::int64_t kSize = 16;
  Mesh mesh({{"stage", 2}, {"x", 4}});
  const auto body = [](const Tensor& w, const Tensor& h) { return tanh(matmul(tanh(h), w)); };
  std::vector<PipelineStage> stages{
      {*mesh.submesh({"x"}, 0), ones({kSize, kSize}) * 0.1f,
       [body](const Tensor& w, const Tensor& x) { return body(w, x); }},
      {*mesh.submesh({"x"}, 4), ones({kSize, kSize}) * 0.1f,
       [body](const Tensor& w, const Tensor& h, const Tensor&) { return mean(body(w, h)); }}};
  for (const PipelineSchedule& schedule :
       {gpipe(2, 4), one_forward_one_backward(2, 4), zero_bubble(2, 4)}) {
    Tensor x = mark_sharding(ones({8, kSize}), Sharding(stages[0].mesh(), P("x", none)));
    Pipeline pipeline(stages, schedule, {.optimizer = optim::Adam{}});
    pipeline.step(std::vector<Tensor>(4, x));
    options_.pipeline.optimizer = optim::Adam{};
    PipelineReport report = explain_pipeline(target_, stages, schedule, x, options_);
    for (std::size_t s = 0; s < 2; ++s) {
      const PipelineStageMemory& memory = report.stages()[s].memory;
      EXPECT_EQ(memory.kept_microbatches, pipeline.stats().peak_activations[s]) << schedule.name();
      // All that is kept is split over the four devices.
      EXPECT_EQ(4 * memory.activations, pipeline.stats().peak_activation_bytes[s])
          << schedule.name() << ", stage " << s;
    }
  }
}

TEST_F(ExplainPipeline, StagesOnTheSameDevicesShareTheirMemory) {
  Mesh mesh({{"x", 2}});
  std::vector<PipelineStage> apart = products(2, 16), together;
  for (const PipelineStage& one : apart) {
    Tensor w = abstract_tensor({16, 16}, DType::f32, mesh, P(none, none));
    if (together.empty())
      together.emplace_back(
          mesh, w, [](const Tensor& weight, const Tensor& x) { return matmul(x, weight); });
    else
      together.emplace_back(mesh, w, [](const Tensor& weight, const Tensor& h, const Tensor&) {
        return sum(matmul(h, weight));
      });
    static_cast<void>(one);
  }
  PipelineReport one = explain_pipeline(target_, apart, gpipe(2, 4), rows(apart, 8, 16), options_);
  PipelineReport both =
      explain_pipeline(target_, together, gpipe(2, 4), rows(together, 8, 16), options_);
  const auto &first = both.stages()[0].memory, &last = both.stages()[1].memory;
  EXPECT_EQ(first.total, last.total);
  const std::int64_t always = 4 * 16 * 16 * 4;  // parameters and gradients of both
  EXPECT_GE(first.total, always + first.activations + last.activations);
  EXPECT_GT(first.total, one.stages()[0].memory.total);
  EXPECT_EQ(both.transfers()[0].bytes, 0);  // what is there is not sent
}

TEST_F(ExplainPipeline, NamesTheStageThatDoesNotFit) {
  std::vector<PipelineStage> stages = products(3, 16);
  Tensor wide = abstract_tensor({16, 4096}, DType::f32, stages[1].mesh(), P(none, none));
  stages[1] = PipelineStage(stages[1].mesh(), wide,
                            [](const Tensor& weight, const Tensor& h, const Tensor&) {
                              return matmul(matmul(h, weight), permute_dims(weight));
                            },
                            {.name = "the wide one"});
  options_.memory = 2 * 16 * 4096 * 4;  // as much as its parameters and gradients
  PipelineReport report = explain_pipeline(target_, stages, one_forward_one_backward(3, 4),
                                           rows(stages, 8, 16), options_);
  EXPECT_FALSE(report.fits());
  EXPECT_TRUE(report.stages()[0].fits());
  EXPECT_FALSE(report.stages()[1].fits());
  EXPECT_LT(report.stages()[1].memory.spare().value(), 0);
  EXPECT_TRUE(report.stages()[2].fits());
  std::string text = report.to_string();
  EXPECT_THAT(text.substr(text.find("the wide one on worker 1")), HasSubstr("does not fit: "));
  EXPECT_EQ(report.slowest(), 1);
}

TEST_F(ExplainPipeline, CompilesEqualProgramsOnce) {
  std::vector<PipelineStage> stages = products(4, 16);
  PipelineReport report = explain_pipeline(target_, stages, one_forward_one_backward(4, 4),
                                           rows(stages, 8, 16), options_);
  // The first, the middle ones and the last have different backward passes. The first two have the
  // same forward pass.
  EXPECT_LE(report.parts().compiled, 6);
  EXPECT_GE(report.parts().compiled, 4);
  EXPECT_EQ(report.stages()[1].programs[0].report, report.stages()[2].programs[0].report);
  EXPECT_EQ(report.stages()[1].programs[1].report, report.stages()[2].programs[1].report);
}

TEST_F(ExplainPipeline, SplitGradientsKeepMoreForTheWeights) {
  std::vector<PipelineStage> stages = products(2, 16);
  PipelineReport report =
      explain_pipeline(target_, stages, zero_bubble(2, 4), rows(stages, 8, 16), options_);
  const PipelineStageReport& first = report.stages()[0];
  std::vector<PipelineWork> works;
  for (const PipelineProgram& one : first.programs) works.push_back(one.work);
  EXPECT_THAT(works, testing::Contains(PipelineWork::kWeightGradient));
  EXPECT_GE(first.memory.activations, first.memory.activations_of_microbatch);
}

TEST_F(ExplainPipeline, TransfersWithGivenTimes) {
  std::vector<PipelineStage> stages = products(2, 16);
  options_.times = {{.forward = 1, .input_gradient = 1, .weight_gradient = 1, .send_forward = 4}};
  PipelineReport report = explain_pipeline(target_, stages, one_forward_one_backward(2, 3),
                                           rows(stages, 8, 16), options_);
  ASSERT_EQ(report.transfers().size(), 2u);
  const PipelineTransfer &forward = report.transfers()[0], &backward = report.transfers()[1];
  EXPECT_TRUE(forward.is_forward());
  EXPECT_FALSE(backward.is_forward());
  EXPECT_EQ(forward.bytes, 8 * 16 * 4);
  EXPECT_EQ(forward.device_bytes, 4 * 16 * 4);
  EXPECT_EQ(backward.bytes, 8 * 16 * 4);
  EXPECT_EQ(forward.time, 4);
  PipelineTimeline without = timeline_of(report.parts().schedule,
                                         {.forward = 1, .input_gradient = 1, .weight_gradient = 1});
  EXPECT_DOUBLE_EQ(forward.exposed, report.time() - without.length);
  EXPECT_DOUBLE_EQ(forward.link_use, 3 * 4 / report.time());
  EXPECT_EQ(backward.exposed, 0);
}

TEST_F(ExplainPipeline, JsonHasWhatTheReportHas) {
  std::vector<PipelineStage> stages = products(2, 16);
  options_.memory = 1 << 20;
  PipelineReport report = explain_pipeline(target_, stages, one_forward_one_backward(2, 3),
                                           rows(stages, 8, 16), options_);
  JsonValue json = read_json(to_json(report, 1)).value();
  EXPECT_EQ(json.find("schema")->text, "meshard.pipeline");
  EXPECT_EQ(json.find("schedule")->text, "1F1B");
  EXPECT_FALSE(json.find("times_known")->truth);
  const JsonValue& memory = *json.find("stages")->elements.at(1).find("memory");
  EXPECT_EQ(memory.find("capacity")->whole_number(), 1u << 20);
  EXPECT_EQ(memory.find("parameters")->whole_number(), 16u * 16 * 4);
  EXPECT_EQ(json.find("transfers")->elements.size(), 2u);
}

TEST_F(ExplainPipeline, RefusesWhatDoesNotMatch) {
  std::vector<PipelineStage> stages = products(2, 16);
  EXPECT_TRUE(throws_error(
      [&] { explain_pipeline(target_, stages, gpipe(3, 4), rows(stages, 8, 16), options_); },
      ErrorCode::kInvalidArgument, {"2 stages for a schedule of 3", "explain_pipeline_test.cc:"}));
  Target small = Target::parse("cpu:2").value();
  EXPECT_TRUE(throws_error(
      [&] { explain_pipeline(small, stages, gpipe(2, 4), rows(stages, 8, 16), options_); },
      ErrorCode::kInvalidArgument, {"device 2", "cpu:2"}));
  options_.times.resize(3);
  EXPECT_TRUE(throws_error(
      [&] { explain_pipeline(target_, stages, gpipe(2, 4), rows(stages, 8, 16), options_); },
      ErrorCode::kInvalidArgument, {"3 times for 2 stages"}));
}

}  // namespace
}  // namespace meshard
