// Stages, transfers and updates that fail in the middle of a step: the error says where, nothing
// has changed, and the next step works.
#include <gmock/gmock.h>

#include "tests/pipeline/fake_stages.h"

namespace meshard {
namespace {

using testing::HasSubstr;

constexpr int kStages = 3, kMicrobatches = 4;

struct PipelineFailures : OnSimulatedClock {
  PipelineFailures() {
    for (const PipelineSchedule& schedule :
         {one_forward_one_backward(kStages, kMicrobatches), zero_bubble(kStages, kMicrobatches)})
      pipelines_.emplace_back(
          stages_on(device_of_each(kStages, kStages)), schedule,
          PipelineOptions{.optimizer = optim::Adam{.rate = 0.1}, .clip_norm = 1});
  }
  Pipeline& joint() { return pipelines_[0]; }
  Pipeline& split() { return pipelines_[1]; }

  static std::vector<const Storage*> parameters_of(const Pipeline& pipeline) {
    std::vector<const Storage*> all;
    for (int s = 0; s < kStages; ++s)
      all.push_back(pipeline.parameters<Tensor>(s).value().storage());
    return all;
  }

  // A step that fails once `prepare` was called. Returns its error.
  template <class Prepare>
  std::string error_of_step(Pipeline& pipeline, Prepare&& prepare) {
    pipeline.step(batch_);
    std::vector<const Storage*> before = parameters_of(pipeline);
    prepare();
    std::string text;
    try {
      pipeline.step(batch_);
    } catch (const Error& error) {
      text = error.what();
    }
    if (!text.empty()) {
      EXPECT_EQ(parameters_of(pipeline), before);
      for (const Storage* each : before) EXPECT_EQ(each->gone(), "");
      EXPECT_THROW((void)pipeline.gradients<Tensor>(0), Error);
    }
    EXPECT_NO_THROW(pipeline.step(batch_)) << "after " << text;
    std::vector<const Storage*> after = parameters_of(pipeline);
    for (int s = 0; s < kStages; ++s) EXPECT_NE(after[s], before[s]) << "the next step works";
    return text;
  }
  std::string error_of_program(Pipeline& pipeline, const char* program, int launch) {
    return error_of_step(pipeline, [&] {
      control.fail_program(program, launch, static_cast<int>(ErrorCode::kInternal));
    });
  }

  std::vector<Pipeline> pipelines_;
  std::vector<Tensor> batch_ = fake_batch(kMicrobatches);
};

TEST_F(PipelineFailures, TheErrorNamesStageWorkAndMicrobatch) {
  // Programs that take time fail after they were launched, others in the launch. Both are errors of
  // the step's line.
  for (int timed_stages : {0, kStages})
    for (int m = 0; m < kMicrobatches; ++m)
      for (int s = 0; s < kStages; ++s) {
        restart_clock(timed_stages);
        const auto expect = [&](Pipeline& pipeline, const char* work) {
          std::string text = error_of_program(pipeline, cat("stage ", s, " ", work).c_str(), m + 1);
          EXPECT_THAT(text, HasSubstr("the run failed as the test asked"));
          EXPECT_THAT(text, HasSubstr(cat("in stage ", s, ", ", work, " of microbatch ", m)));
          EXPECT_THAT(text, HasSubstr("pipeline_failure_test.cc:"));
        };
        expect(joint(), "forward");
        expect(joint(), "backward");
        expect(split(), "weight gradient");
        if (s > 0) expect(split(), "input gradient");
      }
}

TEST_F(PipelineFailures, AnUpdateThatFailsLeavesAllStagesAsTheyWere) {
  for (double time : {0, 50})
    for (int s = 0; s < kStages; ++s) {
      restart_clock(kStages);
      control.set_duration(cat("stage ", s, " update").c_str(), time);
      EXPECT_THAT(error_of_program(joint(), cat("stage ", s, " update").c_str(), 1),
                  HasSubstr(cat("in stage ", s, ", update")));
    }
}

TEST_F(PipelineFailures, EveryLaunchAndCopyMayBeRefused) {
  for (const char* entry : {"PJRT_LoadedExecutable_Execute", "PJRT_Buffer_CopyToDevice"}) {
    joint().step(batch_);
    int before = control.call_count(entry);
    joint().step(batch_);
    int calls = control.call_count(entry) - before, placed = 0;
    ASSERT_GE(calls, kMicrobatches * (kStages - 1));
    for (int k = 1; k <= calls; ++k) {
      std::string text = error_of_step(joint(), [&] {
        control.fail_at(entry, k, static_cast<int>(ErrorCode::kResourceExhausted), "refused");
      });
      EXPECT_THAT(text, HasSubstr("refused")) << "call " << k;
      placed += text.find("in stage ") != text.npos;
    }
    // All but the programs that make accumulators, the norm and the mean of the losses.
    EXPECT_GE(placed, calls - 4 * kStages - 2) << entry;
  }
}

TEST_F(PipelineFailures, ASendThatIsRefusedIsNamed) {
  std::string text = error_of_step(joint(), [&] {
    control.fail_at("PJRT_Buffer_CopyToDevice", 1, static_cast<int>(ErrorCode::kInternal), "cut");
  });
  EXPECT_THAT(text, HasSubstr("in stage 0, send forward of microbatch 0"));
}

TEST_F(PipelineFailures, ParametersThatAnOptimizerCannotUpdateAreFoundFirst) {
  Mesh mesh({{"x", 1}});
  std::vector<PipelineStage> stages = stages_on(device_of_each(2, 2));
  stages[1] = PipelineStage(mesh, i32({12}), [](const Tensor& own, const Tensor& h, const Tensor&) {
    return mean(h) + 0.0f * sum(astype(own, DType::f32));
  });
  Pipeline pipeline(stages, gpipe(2, 2), {.optimizer = optim::Sgd{.rate = 0.1}});
  std::uint64_t sends = pipeline.stats().sends;
  EXPECT_TRUE(throws_error([&] { pipeline.step(fake_batch(2)); }, ErrorCode::kInvalidArgument,
                           {"stage 1 has parameters that are not floats"}));
  EXPECT_EQ(pipeline.stats().sends, sends) << "before any work";
}

}  // namespace
}  // namespace meshard
