// When the workers of a pipeline work and when they wait.
#pragma once
#include <string>
#include <vector>

#include "meshard/base/field_notes.h"
#include "meshard/base/fields.h"
#include "meshard/pipeline/schedule/schedule.h"

namespace meshard {

/// Value type: how long the work of a stage takes for one microbatch, in any unit, such as seconds.
struct StageTimes {
  double forward = 1;
  double input_gradient = 1;
  /// A backward action takes input_gradient + weight_gradient.
  double weight_gradient = 1;
  /// Once for all microbatches.
  double update = 0;
  /// Until the stage's result is at the next stage, and its gradients at the previous one.
  double send_forward = 0, send_backward = 0;

  MESHARD_FIELDS(forward, input_gradient, weight_gradient, update, send_forward, send_backward)
  static constexpr FieldNotes kFieldNotes{.local = "send_forward send_backward"};
  double of(PipelineWork work) const;
  friend bool operator==(const StageTimes&, const StageTimes&) = default;
};

/// Value type: a schedule with the time of each action.
struct PipelineTimeline {
  /// `action`, and its `start` and `end`.
  using Entry = internal::WalkedAction;
  /// The entries of each worker, in the order of the schedule. Sends are entries if the schedule
  /// lists them.
  std::vector<std::vector<Entry>> workers;
  /// The end of the last action.
  double length = 0;

  /// The time that a worker works. @pre 0 <= worker < workers.size()
  double busy(int worker) const;
  /// The fraction of the workers' time in which they wait, in [0, 1): 1 - sum of busy() / (workers
  /// * length). 0 if nothing takes time.
  double bubble() const;
  /// The worker that works longest, which bounds the pipeline's speed.
  int slowest() const;
};

/// Runs the schedule with each action as early as its worker's order and what it needs allow.
/// @param times one for each stage, or one for all
/// @error invalid argument, thrown: another number of times; a negative or infinite time
PipelineTimeline timeline_of(const PipelineSchedule& schedule, const std::vector<StageTimes>& times,
                             SourceLocation where = SourceLocation::current());
PipelineTimeline timeline_of(const PipelineSchedule& schedule, const StageTimes& times = {},
                             SourceLocation where = SourceLocation::current());

}  // namespace meshard
