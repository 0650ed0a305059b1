// Pipelines of small stages on the devices of the fake plugin, whose programs take simulated time.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "meshard/pipeline/pipeline.h"
#include "meshard/pipeline/schedule/schedule.h"
#include "meshard/pipeline/schedule/timeline.h"
#include "tests/error/fake_runtime.h"

namespace meshard {

/// Stages of one matrix each. Stage s runs on the devices `devices[s]`.
inline std::vector<PipelineStage> stages_on(const std::vector<std::vector<std::int64_t>>& devices) {
  std::vector<PipelineStage> stages;
  for (std::size_t s = 0; s < devices.size(); ++s) {
    Mesh mesh({{"x", static_cast<std::int64_t>(devices[s].size())}}, devices[s]);
    Tensor w = mark_sharding(f32({12, 12}), mesh, P(none, "x"));
    if (s == 0)
      stages.push_back(PipelineStage(mesh, w, [mesh](const Tensor& own, const Tensor& x) {
        return sharding_constraint(tanh(matmul(x, own)), Sharding(mesh, P("x", none)));
      }));
    else if (s + 1 < devices.size())
      stages.push_back(
          PipelineStage(mesh, w, [mesh](const Tensor& own, const Tensor& h, const Tensor&) {
            return sharding_constraint(tanh(matmul(h, own)), Sharding(mesh, P("x", none)));
          }));
    else
      stages.push_back(
          PipelineStage(mesh, w, [](const Tensor& own, const Tensor& h, const Tensor&) {
            return mean(square(matmul(h, own)));
          }));
  }
  return stages;
}

/// One device for each worker, and `stages` stages.
inline std::vector<std::vector<std::int64_t>> device_of_each(int stages, int workers) {
  std::vector<std::vector<std::int64_t>> devices;
  for (int s = 0; s < stages; ++s) devices.push_back({s % workers});
  return devices;
}

inline std::vector<Tensor> fake_batch(int microbatches) {
  return std::vector<Tensor>(static_cast<std::size_t>(microbatches), f32({12, 12}));
}

/// The durations of a forward pass and of each of the two gradients.
inline constexpr double kForward = 100, kGradient = 100;

/// Gives the stages' programs their durations. In a schedule that splits the gradients, the first
/// stage has no gradient of inputs to compute: all of its backward pass is in the other program.
inline void set_durations(const FakeControl& control, int stages) {
  for (int s = 0; s < stages; ++s) {
    const auto set = [&](const char* work, double time) {
      control.set_duration(cat("stage ", s, " ", work).c_str(), time);
    };
    set("forward", kForward);
    set("backward", 2 * kGradient);
    set("input gradient", kGradient);
    set("weight gradient", s == 0 ? 2 * kGradient : kGradient);
  }
}

/// What the devices have done since the clock was started.
struct Work {
  /// Of the stages' programs; updates are none of them.
  double begin = 0, end = 0, busy = 0;
  /// When the updates begin and end.
  double update_begin = 0, update_end = 0;
  int programs = 0;

  double length() const { return end - begin; }
  /// The fraction of the time of `devices` devices in which they wait.
  double bubble(int devices) const { return 1 - busy / (devices * length()); }
};

inline Work work_of(const FakeControl& control) {
  Work work;
  FakeRun run;
  bool has_update = false;
  for (int i = 0; control.run(i, &run); ++i) {
    const std::string name = run.program;
    if (!name.starts_with("stage ")) continue;
    if (name.ends_with(" update")) {
      work.update_begin = has_update ? std::min(work.update_begin, run.begin) : run.begin;
      work.update_end = std::max(work.update_end, run.end);
      has_update = true;
    }
    if (!name.ends_with(" forward") && !name.ends_with(" backward") && !name.ends_with(" gradient"))
      continue;
    work.begin = work.programs == 0 ? run.begin : std::min(work.begin, run.begin);
    work.end = std::max(work.end, run.end);
    work.busy += run.end - run.begin;
    ++work.programs;
  }
  return work;
}

/// A runtime on the fake plugin with a simulated clock.
struct OnSimulatedClock : testing::Test {
  void SetUp() override {
    (void)runtime_client();
    restart_clock(0);
  }
  void TearDown() override {
    runtime_client().await_launches();
    control.simulate(0);
    EXPECT_EQ(control.invalid_calls(), 0);
  }
  /// Starts at 0, with the durations of so many stages.
  void restart_clock(int stages) {
    runtime_client().await_launches();
    control.simulate(1);
    set_durations(control, stages);
  }
  const FakeControl& control = fake_runtime();
};

}  // namespace meshard
