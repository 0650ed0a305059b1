// Traces of the runtime's activity, for Perfetto and chrome://tracing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "meshard/base/enum_names.h"
#include "meshard/base/fields.h"
#include "meshard/base/result.h"
#include "meshard/base/source_location.h"

namespace meshard {

namespace internal {
class EventRecorder;
}

/// A value: one operation of the runtime or of a device.
struct TraceEvent {
  /// The kind of resource that was busy.
  enum class Track {
    kHost,      ///< a thread of this process
    kDevice,    ///< a device, running a program
    kTransfer,  ///< a transfer to or from a device
  } track = Track::kHost;
  /// `call`, `lower`, `compile`, `load`, `launch`, `place`, `gather` on the host; `execute` on a
  /// device; `send`, `read`, `move` for transfers. In a run of several processes also `barrier`,
  /// `collective` and `exchange` on the host, from the call until the other processes have come and
  /// the data is there.
  std::string category;
  /// The subject of the operation: the program's name, `main`, or the value's type, `f32[8,4]`.
  std::string what;
  /// The user's source line. For a program, the line of its jit() or of the read that required it;
  /// for a send or a read, the line of the placement or read that it belongs to. Empty: none.
  std::string place;
  /// For the host, the thread's number (0 is the one that began the trace); otherwise the device's
  /// id.
  int number = 0;
  /// The device type of the device; empty for the host.
  std::string platform = {};
  /// Start in microseconds since the trace began, and duration in microseconds.
  double start = 0, duration = 0;
  /// For transfers, placements and gathers.
  std::optional<std::uint64_t> bytes = std::nullopt;
  /// The device or the plugin reported an error.
  bool failed = false;
  MESHARD_FIELDS(track, category, what, place, number, platform, start, duration, bytes, failed)
};

template <>
struct EnumNames<TraceEvent::Track> {
  using enum TraceEvent::Track;
  static constexpr EnumName<TraceEvent::Track> kNames[] = {
      {kHost, "host"}, {kDevice, "device"}, {kTransfer, "transfer"}};
};

/// Options of a trace.
struct TraceOptions {
  /// Maximum number of events (default 1,000,000). Later ones are dropped and counted.
  std::size_t most_events = 1'000'000;
};

/// Move-only owner of a trace, which ends with stop(), write() or the destruction of the owner.
///
/// A program's execution on a device ends when the plugin reports that the device is done. Plugins
/// do not report when a device started. The execution therefore starts at the launch or, if later,
/// at the end of the previous program on that device.
///
/// @code
/// TraceSession trace = start_trace();
/// sum(ones({8, 4}) * 2).item<float>();
/// trace.stop();
/// bool compiled = false;
/// for (const TraceEvent& event : trace.events()) compiled |= event.category == "compile";
/// std::cout << compiled << "\n";
/// @endcode
/// prints `1`.
class TraceSession {
 public:
  TraceSession(TraceSession&&) noexcept = default;
  TraceSession& operator=(TraceSession&& other) noexcept;
  ~TraceSession() { stop(); }

  /// Waits until the devices have finished all launches, and ends the trace.
  void stop();
  /// All events, sorted by start time. Stops the trace first.
  const std::vector<TraceEvent>& events();
  /// The number of events that were dropped because there were too many. Stops the trace first.
  std::uint64_t left_out();
  /// The trace in Chrome's trace-event format (JSON object form, complete events, microseconds;
  /// "Trace Event Format", Google, 2016). It has a track for each host thread, for each device, and
  /// for the transfers of each device. Transfers that overlap get additional tracks. Stops the
  /// trace first.
  std::string to_json();
  /// Writes to_json() to a file, for ui.perfetto.dev. Stops the trace first.
  /// @error the system's error, with the path.
  Result<void> write(const std::string& path);
  /// Writes one file for all processes of the run. All of them call this, and only the path of
  /// process 0 counts. Each process of the file is a process of the run, whose pid is its rank, and
  /// has the tracks of to_json(). Times are by the clock of process 0: the clocks are compared now
  /// (clock_offset()), and `otherData.processes` says how precisely. In one process, this is
  /// write(). Stops the trace first.
  /// @error in all processes, the system's error of process 0; those of the store
  Result<void> write_all(const std::string& path);

 private:
  friend TraceSession start_trace(const TraceOptions& options, SourceLocation where);
  explicit TraceSession(std::shared_ptr<internal::EventRecorder> recorder)
      : recorder_(std::move(recorder)) {}
  std::shared_ptr<internal::EventRecorder> recorder_;
  bool stopped_ = false;
  std::vector<TraceEvent> events_;
};

/// Starts recording the runtime's activity, in all threads. Without a trace, the runtime loads one
/// flag per call and records nothing. During a trace, programs without collectives are launched on
/// all devices at once, not device by device.
/// @error failed precondition if a trace is already on; only one can exist at a time.
TraceSession start_trace(const TraceOptions& options = {},
                         SourceLocation where = SourceLocation::current());

}  // namespace meshard
