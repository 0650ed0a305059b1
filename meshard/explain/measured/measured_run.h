// Measured times of a program's steps, from the device operations in a trace of a profiler.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/fields.h"
#include "meshard/base/result.h"
#include "meshard/explain/cost/schedule.h"

namespace meshard {

/// Value type: one execution of an instruction on a device, as a profiler recorded it.
struct TraceOp {
  /// The instruction's name in the compiled module.
  std::string op;
  /// The module's name; empty if the trace does not say.
  std::string module;
  std::string device;
  /// The name of the program's run; empty if the trace does not name it.
  std::string run;
  /// Seconds since some time that all events share.
  double start = 0, seconds = 0;
  friend bool operator==(const TraceOp&, const TraceOp&) = default;
};

/// Reads the device operations of a trace that jax.profiler, TensorBoard and XProf write, or gzip
/// of it: an XSpace (`*.xplane.pb`, read_xspace_ops), or JSON in the Trace Event Format of Chrome
/// and Perfetto (`*.trace.json.gz`). In the latter, operations are complete events (`"ph": "X"`)
/// with an argument `hlo_op`, and those of threads named `XLA Ops`; the array of events may be cut
/// off, as the format allows.
/// @error data loss: not such a file
Result<std::vector<TraceOp>> read_trace_ops(std::string_view bytes);

/// True if the bytes may be a serialized XSpace: protobuf fields of that message and no others.
bool may_be_xspace(std::string_view bytes);

/// Reads the device operations of an XSpace, the `*.xplane.pb` of jax.profiler, PyTorch/XLA,
/// TensorBoard and XProf: events with a statistic `hlo_op`, and those of lines named `XLA Ops`.
/// Source of the fields: tsl/profiler/protobuf/xplane.proto.
/// @error data loss: damaged bytes
Result<std::vector<TraceOp>> read_xspace_ops(std::string_view bytes);

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
/// - If the trace does not number the runs, their number is the count of the most frequent step,
///   divided by its executions in one run.
/// @error invalid argument: the trace has no event of the module
Result<MeasuredRun> measure(const std::vector<TraceOp>& ops, const StepCosts& costs,
                            const std::vector<Collective>& collectives,
                            std::vector<TimelineEntry>& timeline);

}  // namespace meshard
