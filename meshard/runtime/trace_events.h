// What the runtime does and when, as a trace that Perfetto and chrome://tracing show.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/base/source_location.h"

namespace meshard {

namespace internal {
class EventRecorder;
}

/// A value: something that the runtime or a device did.
struct TraceEvent {
  /// Whose time it took.
  enum class Track {
    kHost,      ///< a thread of this process
    kDevice,    ///< a device, running a program
    kTransfer,  ///< the way to or from a device
  } track = Track::kHost;
  /// `call`, `lower`, `compile`, `load`, `launch`, `place`, `gather` on the host; `execute` on a
  /// device; `send`, `read`, `move` on the way.
  std::string category;
  /// What it was done with: the program's name, `main`, or the value's type, `f32[8,4]`.
  std::string what;
  /// The user's line: of a program that of its jit(), or of the read that needed it; of a send or
  /// a read that of the placing or reading it belongs to. Empty: none.
  std::string place;
  /// Of the host the thread, 0 is the one that began the trace; else the device's id.
  int number = 0;
  /// The device type of the device; empty for the host.
  std::string platform = {};
  /// Microseconds since the trace began, and how many it took.
  double start = 0, duration = 0;
  /// Of transfers, placements and gathers.
  std::optional<std::uint64_t> bytes = std::nullopt;
  /// The device or the plugin reported an error.
  bool failed = false;
};

struct TraceOptions {
  /// Later events are left out, and counted.
  std::size_t most_events = 1'000'000;
};

/// Move-only owner of a trace that is on, or was: it ends with stop(), write() or the owner.
///
/// A program's time on a device ends when the plugin says that the device is through. Plugins do
/// not say when a device began: it counts from the launch, or from the end of the program before it
/// on that device if that is later.
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

  /// Waits until the devices are through with what was launched, and ends the trace.
  void stop();
  /// All events, sorted by their start. Stops first.
  const std::vector<TraceEvent>& events();
  /// How many events were left out because there were too many. Stops first.
  std::uint64_t left_out();
  /// Chrome's trace-event format (JSON object form, complete events, microseconds; "Trace Event
  /// Format", Google, 2016), with a track for each thread of the host, for each device, and for the
  /// transfers of each device. Transfers that overlap go to a further track. Stops first.
  std::string to_json();
  /// to_json() into a file, for ui.perfetto.dev. Stops first.
  /// @error what the system answers, with the path.
  Result<void> write(const std::string& path);

 private:
  friend TraceSession start_trace(const TraceOptions& options, SourceLocation where);
  explicit TraceSession(std::shared_ptr<internal::EventRecorder> recorder)
      : recorder_(std::move(recorder)) {}
  std::shared_ptr<internal::EventRecorder> recorder_;
  bool stopped_ = false;
  std::vector<TraceEvent> events_;
};

/// Begins to record what the runtime does, in all threads. While no trace is on, the runtime loads
/// one flag for each call and records nothing. Programs without collectives are launched on all
/// devices at once while a trace is on, not device by device.
/// @error failed precondition if a trace is on already: there is one at a time.
TraceSession start_trace(const TraceOptions& options = {},
                         SourceLocation where = SourceLocation::current());

}  // namespace meshard
