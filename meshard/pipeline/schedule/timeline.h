// When the workers of a pipeline work and when they wait, as times and as pictures.
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

/// Draws a timeline as text (UTF-8): a line for each worker, with one column for each unit of time.
/// The unit is the shortest action that takes time, or longer if the picture would be wider than
/// `most_columns`. An action shows its letters and its microbatch, with its stage if workers have
/// several; `·` is waiting. Actions that take no time, and sends, are not drawn.
///
/// `picture(timeline_of(one_forward_one_backward(2, 3)))`:
/// ```
/// worker 0 │F0│F1│· │· │B0───│F2│B1───│· │B2───│
/// worker 1 │· │F0│B0───│F1│B1───│F2│B2───│· │· │
/// ```
/// @error invalid argument, thrown: most_columns is 0
std::string picture(const PipelineTimeline& timeline, std::size_t most_columns = 60,
                    SourceLocation where = SourceLocation::current());

/// The same as a self-contained SVG image: a row for each worker, a box for each action, with a
/// color for each kind of work. Lists the kinds below.
std::string picture_svg(const PipelineTimeline& timeline);

/// The same as a trace for Perfetto and chrome://tracing: a track for each worker.
/// @param seconds the length of the timeline's unit
std::string trace_json(const PipelineTimeline& timeline, double seconds = 1);

}  // namespace meshard
