// Measured times of a program's steps, from a trace.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "meshard/base/fields.h"
#include "meshard/base/result.h"
#include "meshard/explain/cost/schedule.h"
#include "meshard/explain/measured/trace_ops.h"

namespace meshard {

/// Value type: what a trace says about the runs of a program.
struct MeasuredRun {
  /// Number of devices in the trace.
  std::int64_t devices = 0;
  /// Number of runs of the program on each.
  std::int64_t runs = 0;
  /// The time in which a device runs steps of the program, in one run: the mean over all.
  double seconds = 0;
  /// The time of collectives in one run, the mean over all devices and runs: hidden behind other
  /// steps of the device, and exposed.
  TransferTime links = {};
  /// The same by kind and axes.
  std::vector<CommunicationTime> communication = {};
  /// Events whose instruction is in the compiled module.
  std::int64_t matched_events = 0;
  /// Other events of the same module.
  std::int64_t unmatched_events = 0;
  /// The names of the others, at most ten.
  std::vector<std::string> unmatched = {};

  MESHARD_FIELDS(devices, runs, seconds, links, communication, matched_events, unmatched_events,
                 unmatched)
  /// One line, `measured 9.1 ms a run (mean of 3 runs on 8 devices): 1.2 ms exposed communication
  /// (0 s hidden); 240 events`, and one for each kind of communication, with the estimate if there
  /// is one.
  std::string to_string(const std::optional<Schedule>& estimate) const;
  friend bool operator==(const MeasuredRun&, const MeasuredRun&) = default;
};

/// Matches a trace's events to the instructions by their names, and sets
/// TimelineEntry::measured_seconds.
/// - Steps of loops are in the trace once for each iteration; the events of a loop itself only
///   enclose them.
/// - An asynchronous collective takes its time from the begin of its start to the end of its done.
/// - If the trace does not number the runs, their number is that of the most frequent step,
///   divided by its executions in one run.
/// @error invalid argument: the trace has no event of the module
Result<MeasuredRun> measure(const std::vector<TraceOp>& ops, const StepCosts& costs,
                            const std::vector<Collective>& collectives,
                            std::vector<TimelineEntry>& timeline);

}  // namespace meshard
