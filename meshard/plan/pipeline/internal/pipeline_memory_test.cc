#include <gtest/gtest.h>

#include "meshard/graph/abstract_tensor.h"
#include "meshard/pipeline/schedule/schedule.h"
#include "meshard/plan/pipeline/internal/stage_compiler.h"

namespace meshard::internal {
namespace {

std::vector<PipelineStageReport> stages_on(const std::vector<Mesh>& meshes) {
  std::vector<PipelineStageReport> stages;
  for (const Mesh& mesh : meshes) stages.push_back({.name = "", .worker = 0, .mesh = mesh});
  return stages;
}

const Mesh kFirst({{"x", 2}}, {0, 1}), kSecond({{"x", 2}}, {2, 3});

TEST(PipelineMemory, ActivationsAndTemporariesOrUpdate) {
  // Stage 0 keeps two microbatches in 1F1B, stage 1 one.
  PipelineTimeline timeline = timeline_of(one_forward_one_backward(2, 4));
  std::vector<StageNeeds> needs(2);
  needs[0] = {.always = 1000, .after_forward = 10, .program = 5};
  needs[1] = {.always = 2000, .after_forward = 20, .program = 7, .update_results = 500};
  std::vector<PipelineStageReport> stages = stages_on({kFirst, kSecond});
  set_peaks(timeline, needs, stages);
  EXPECT_EQ(stages[0].memory.activations, 2 * 10);
  EXPECT_EQ(stages[0].memory.total, 1000 + 2 * 10 + 5);
  EXPECT_EQ(stages[1].memory.activations, 20);
  EXPECT_EQ(stages[1].memory.total, 2000 + 500);  // the update
  // GPipe keeps all microbatches.
  stages = stages_on({kFirst, kSecond});
  set_peaks(timeline_of(gpipe(2, 4)), needs, stages);
  EXPECT_EQ(stages[0].memory.total, 1000 + 4 * 10 + 5);
  EXPECT_EQ(stages[1].memory.activations, 4 * 20);
}

TEST(PipelineMemory, WhatWaitsIsInMemory) {
  // Stage 0 is three times as fast: in GPipe, results for stage 1 wait there. While it works for
  // microbatch 0, two others have come; while for 1, three more (of 6).
  std::vector<StageTimes> times{{.forward = 1}, {.forward = 3}};
  PipelineTimeline timeline = timeline_of(gpipe(2, 6), times);
  std::vector<StageNeeds> needs(2);
  needs[1] = {.received_forward = 100};
  std::vector<PipelineStageReport> stages = stages_on({kFirst, kSecond});
  set_peaks(timeline, needs, stages);
  // Forward passes of stage 1 begin at 1, 4, 7, ...; results come at 1, 2, ..., 6. At 6, six have
  // come, and two have begun.
  EXPECT_EQ(stages[1].memory.total, 4 * 100);
  EXPECT_EQ(stages[1].memory.activations, 0);
}

TEST(PipelineMemory, SplitGradientsHandOver) {
  // A schedule with all weight gradients at the end: between them, each microbatch keeps what its
  // input gradient left.
  PipelineSchedule late = PipelineSchedule::parse("0F0 0I0 0F1 0I1 0W0 0W1").value();
  std::vector<StageNeeds> needs(1);
  needs[0] = {.after_forward = 10, .after_input_gradient = 40};
  std::vector<PipelineStageReport> stages = stages_on({kFirst});
  set_peaks(timeline_of(late), needs, stages);
  EXPECT_EQ(stages[0].memory.activations, 2 * 40);
}

TEST(PipelineMemory, SharedDevices) {
  // Both stages on the same devices, which keep what both have at the same time.
  PipelineTimeline timeline = timeline_of(gpipe(2, 2));
  std::vector<StageNeeds> needs(2);
  needs[0] = {.always = 1000, .after_forward = 10, .program = 5};
  needs[1] = {.always = 2000, .after_forward = 20, .program = 7};
  std::vector<PipelineStageReport> stages = stages_on({kFirst, kFirst});
  set_peaks(timeline, needs, stages);
  // The forward passes of both have ended before the first backward pass does.
  EXPECT_EQ(stages[0].memory.total, 3000 + 2 * (10 + 20) + 7);
  EXPECT_EQ(stages[1].memory.total, stages[0].memory.total);
}

TEST(PipelineMemory, DeviceBytes) {
  Tensor split = abstract_tensor({6, 5}, DType::f32, kFirst, P("x", none));
  Tensor uneven = abstract_tensor({5}, DType::bf16, kFirst, P("x"));
  Tensor whole = abstract_tensor({7}, DType::u8);
  EXPECT_EQ(device_bytes({split}), 3 * 5 * 4);
  EXPECT_EQ(device_bytes({uneven}), 3 * 2);  // the larger half
  EXPECT_EQ(device_bytes({split, uneven, whole}), 60 + 6 + 7);
}

}  // namespace
}  // namespace meshard::internal
