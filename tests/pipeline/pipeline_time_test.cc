// Pipelines on a simulated clock: nothing waits that need not, so that the bubbles are those of the
// schedules.
#include <algorithm>
#include <map>

#include "tests/pipeline/fake_stages.h"

namespace meshard {
namespace {

struct PipelineTime : OnSimulatedClock {
  // The work of a step after the first, which compiles.
  Work step(const PipelineSchedule& schedule, int workers) {
    Pipeline pipeline(stages_on(device_of_each(schedule.stages(), workers)), schedule,
                      {.optimizer = optim::Sgd{.rate = 0.1}});
    std::vector<Tensor> batch = fake_batch(schedule.microbatches());
    pipeline.step(batch);
    restart_clock(schedule.stages());
    pipeline.step(batch);
    return work_of(control);
  }
  void expect_bubble(const PipelineSchedule& schedule, int workers, double formula) {
    double bubble = step(schedule, workers).bubble(workers);
    EXPECT_NEAR(bubble, formula, 0.03 * formula)
        << schedule.name() << ", p = " << workers << ", m = " << schedule.microbatches();
  }
};

TEST_F(PipelineTime, BubblesAreThoseOfTheFormulas) {
  for (int p = 2; p <= 8; ++p)
    for (int m : {4, 5, 8, 12, 16, 27, 32, 64}) {
      const double stages = p, microbatches = m;
      const auto formula = [&](double chunks) {
        return (stages - 1) / (chunks * microbatches + stages - 1);
      };
      expect_bubble(gpipe(p, m), p, formula(1));
      expect_bubble(one_forward_one_backward(p, m), p, formula(1));
      if (m >= p) expect_bubble(zero_bubble(p, m), p, formula(3));
    }
}

TEST_F(PipelineTime, BubblesOfInterleavedSchedules) {
  for (int p = 2; p <= 8; ++p)
    for (int v : {2, 3, 4})
      for (int m = p; m <= 64; m += m < 2 * p ? p : 4 * p)
        if (m >= 4)
          expect_bubble(interleaved(p, v, m), p,
                        static_cast<double>(p - 1) / static_cast<double>(v * m + p - 1));
}

TEST_F(PipelineTime, SendsAreBesideTheWork) {
  constexpr int kStages = 4, kMicrobatches = 16;
  constexpr double kSend = 40;
  for (const PipelineSchedule& schedule :
       {gpipe(kStages, kMicrobatches), one_forward_one_backward(kStages, kMicrobatches),
        zero_bubble(kStages, kMicrobatches)}) {
    Pipeline pipeline(stages_on(device_of_each(kStages, kStages)), schedule);
    std::vector<Tensor> batch = fake_batch(kMicrobatches);
    pipeline.backward(batch);
    restart_clock(kStages);
    control.set_copy_time(kSend, 0);
    pipeline.backward(batch);
    Work work = work_of(control);
    std::vector<StageTimes> times(kStages, {.forward = kForward,
                                            .input_gradient = kGradient,
                                            .weight_gradient = kGradient,
                                            .send_forward = kSend,
                                            .send_backward = kSend});
    if (schedule.splits_gradients()) times[0].input_gradient = 0, times[0].weight_gradient *= 2;
    EXPECT_DOUBLE_EQ(work.length(), timeline_of(schedule, times).length) << schedule.name();
    // In GPipe, a batch waits for a send once for each border and direction.
    if (schedule.name() == "GPipe") {
      EXPECT_DOUBLE_EQ(work.length(), (kMicrobatches + kStages - 1) * (kForward + 2 * kGradient) +
                                          2 * (kStages - 1) * kSend);
    }
  }
}

TEST_F(PipelineTime, PiecesOfTilesHoldUpNoDevice) {
  constexpr int kMicrobatches = 16;
  // What stages return is cut, sent in pieces and assembled between 2, 3, 1 and 2 devices.
  const std::vector<std::vector<std::int64_t>> devices{{0, 1}, {2, 3, 4}, {5}, {6, 7}};
  for (double send : {0, 40})
    for (const PipelineSchedule& schedule :
         {gpipe(4, kMicrobatches), one_forward_one_backward(4, kMicrobatches)}) {
      Pipeline pipeline(stages_on(devices), schedule);
      std::vector<Tensor> batch = fake_batch(kMicrobatches);
      pipeline.backward(batch);
      restart_clock(4);
      control.set_copy_time(send, 0);
      RuntimeCounters before = runtime_counters();
      pipeline.backward(batch);
      RuntimeCounters after = runtime_counters() - before;
      EXPECT_EQ(after.buffers_read, 0u);
      EXPECT_GT(after.buffers_moved, 2u * 3 * kMicrobatches) << "several pieces for each send";
      StageTimes times{.forward = kForward,
                       .input_gradient = kGradient,
                       .weight_gradient = kGradient,
                       .send_forward = send,
                       .send_backward = send};
      EXPECT_DOUBLE_EQ(work_of(control).length(), timeline_of(schedule, times).length)
          << schedule.name() << " with sends of " << send;
    }
}

TEST_F(PipelineTime, TheHostWaitsOnlyAtTheEndOfAStep) {
  constexpr int kMicrobatches = 8;
  // Stages of different sizes, one of which shares devices with another.
  std::vector<std::vector<std::int64_t>> devices{{0, 1}, {2, 3, 4}, {5}, {4, 6, 7, 3}};
  Pipeline pipeline(stages_on(devices), one_forward_one_backward(4, kMicrobatches),
                    {.optimizer = optim::Adam{.rate = 0.1}, .clip_norm = 1});
  std::vector<Tensor> batch = fake_batch(kMicrobatches);
  pipeline.step(batch);
  restart_clock(4);
  for (int s = 0; s < 4; ++s) control.set_duration(cat("stage ", s, " update").c_str(), 50);
  RuntimeCounters before = runtime_counters();
  pipeline.backward(batch);
  // With the launch rules of the CPU plugin, the host waits for the oldest of 31 launches.
  if (runtime_client().platform() != "cpu") {
    EXPECT_EQ(control.host_time(), 0);
  }
  EXPECT_EQ((runtime_counters() - before).buffers_read, 0u);

  restart_clock(4);
  for (int s = 0; s < 4; ++s) control.set_duration(cat("stage ", s, " update").c_str(), 50);
  before = runtime_counters();
  pipeline.step(batch);
  RuntimeCounters after = runtime_counters() - before;
  EXPECT_EQ(after.buffers_read, 0u);
  EXPECT_EQ(after.compiles + after.retargets, 0u);
  Work work = work_of(control);
  // All updates wait for the norm of all gradients, and for nothing else. On the simulated clock,
  // each device of a stage runs alone, and a device that has the gradients may give them to others.
  double norm = 0;
  for (int s = 0; s < 4; ++s) {
    std::map<int, double> ends;  // by device
    FakeRun run;
    for (int i = 0; control.run(i, &run); ++i)
      if (run.program == cat("stage ", s, " backward")) ends[run.device] = run.end;
    auto first = std::ranges::min_element(ends, {}, [](const auto& each) { return each.second; });
    ASSERT_NE(first, ends.end());
    norm = std::max(norm, first->second);
  }
  EXPECT_GE(work.update_begin, norm);
  EXPECT_LE(work.update_begin, work.end);
  // Stages 1 and 3 share devices 3 and 4, whose updates follow each other.
  EXPECT_DOUBLE_EQ(work.update_end, work.end + 2 * 50);
  EXPECT_DOUBLE_EQ(control.host_time(), work.update_end);
}

TEST_F(PipelineTime, AHostThatIsFasterThanTheStagesAddsNothing) {
  constexpr int kStages = 4, kMicrobatches = 32;
  Pipeline pipeline(stages_on(device_of_each(kStages, kStages)),
                    one_forward_one_backward(kStages, kMicrobatches));
  std::vector<Tensor> batch = fake_batch(kMicrobatches);
  pipeline.backward(batch);
  restart_clock(kStages);
  control.set_launch_time(20);  // four stages are launched in less than a forward pass
  pipeline.backward(batch);
  double formula = 3.0 / (kMicrobatches + 3);
  EXPECT_NEAR(work_of(control).bubble(kStages), formula, 0.03 * formula);
}

}  // namespace
}  // namespace meshard
