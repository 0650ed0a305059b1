// Traces as text, in Chrome's trace-event format.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "meshard/base/fields.h"
#include "meshard/runtime/trace_events.h"

namespace meshard::internal {

/// The events of this process: a track for each host thread, for each device, and for the transfers
/// of each device.
std::string chrome_trace(const std::vector<TraceEvent>& events, std::uint64_t left_out);

/// A value: the events of one process of a run.
struct ProcessTrace {
  int rank = 0;
  std::string host = {};
  int pid = 0;
  /// In microseconds by the clock of process 0: when the trace began, and how precisely that is
  /// known. The starts of the events count from then.
  double begin = 0, precision = 0;
  std::uint64_t left_out = 0;
  std::vector<TraceEvent> events = {};
  MESHARD_FIELDS(rank, host, pid, begin, precision, left_out, events)
};

/// The events of a run, on one time axis that begins with the first trace. Each process is a
/// process of the trace whose pid is its rank, with the tracks of chrome_trace().
std::string chrome_trace_of_run(const std::vector<ProcessTrace>& processes);

}  // namespace meshard::internal
