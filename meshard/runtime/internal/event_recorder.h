// Records what the runtime does and when, while a trace is on.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/base/source_location.h"
#include "meshard/pjrt/buffer.h"
#include "meshard/pjrt/event.h"
#include "meshard/pjrt/launch.h"
#include "meshard/runtime/trace_events.h"

namespace meshard::internal {

using TraceClock = std::chrono::steady_clock;

/// The events of one trace. Thread-safe; shared by the session and by operations that still run on
/// the devices.
class EventRecorder {
 public:
  explicit EventRecorder(std::size_t most_events);

  /// Stores the event with its times, unless the trace is stopped or full.
  void add(TraceEvent event, TraceClock::time_point start, TraceClock::time_point end);
  /// The calling thread's number; 0 is the thread that began the trace.
  int thread_number();

  /// Registers one more device event; stop() waits for its arrived().
  void expect();
  void arrived();
  /// Waits for the expected events, and then ignores all further events.
  void stop();

  /// The time from which the starts of events count.
  TraceClock::time_point begin() const { return begin_; }
  /// @pre stopped
  const std::vector<TraceEvent>& events() const { return events_; }
  std::uint64_t left_out() const { return left_out_; }

 private:
  const std::size_t most_events_;
  const TraceClock::time_point begin_ = TraceClock::now();
  std::mutex mutex_;
  std::condition_variable all_arrived_;
  bool stopped_ = false;
  std::uint64_t expected_ = 0, left_out_ = 0;
  std::map<std::thread::id, int> threads_;
  std::vector<TraceEvent> events_;
};

/// Set while a trace is on. Without a trace, the runtime's only cost is to load this flag.
inline std::atomic<bool> recording_events{false};
inline bool records_events() { return recording_events.load(std::memory_order_relaxed); }
/// The recorder of the current trace; null if there is none.
std::shared_ptr<EventRecorder> current_recorder_of_events();

/// An event that has begun. Held by a pointer, so that an operation without a trace makes none.
struct BegunEvent {
  std::shared_ptr<EventRecorder> recorder;
  TraceEvent event;
  TraceClock::time_point start;

  /// Returns null while no trace is on.
  static std::unique_ptr<BegunEvent> make(TraceEvent::Track track, std::string_view category,
                                          std::string_view what, SourceLocation where);
  /// Stores the event, which ends now.
  void end(bool failed);
};

/// An operation of a host thread, from begin() to the end of the scope. Costs nothing unless begun.
///
/// ```
/// internal::HostSpan span;
/// if (internal::records_events()) span.begin("compile", name, where);
/// ```
class HostSpan {
 public:
  HostSpan() = default;
  ~HostSpan() {
    if (begun_) finish();
  }
  HostSpan(const HostSpan&) = delete;
  HostSpan& operator=(const HostSpan&) = delete;

  void begin(std::string_view category, std::string_view what, SourceLocation where = {});
  void set_bytes(std::uint64_t bytes) {
    if (begun_) begun_->event.bytes = bytes;
  }
  bool begun() const { return begun_ != nullptr; }

 private:
  friend class TransferSpan;
  void finish() noexcept;
  std::unique_ptr<BegunEvent> begun_;
  const HostSpan* outer_ = nullptr;  // of this thread
};

/// A transfer to or from one device, from begin() until the bytes have arrived.
class TransferSpan {
 public:
  TransferSpan() = default;
  TransferSpan(TransferSpan&&) noexcept = default;
  TransferSpan& operator=(TransferSpan&&) noexcept = default;
  /// A span that was never ended counts as failed.
  ~TransferSpan() {
    if (begun_) finish(/*failed=*/true);
  }

  /// Its source line is `where`, otherwise that of the innermost HostSpan of this thread.
  void begin(std::string_view category, std::string_view what, const pjrt::Device& device,
             std::uint64_t bytes, SourceLocation where = {});
  /// Ends the span now.
  void end() {
    if (begun_) finish(/*failed=*/false);
  }
  /// Ends the span when the buffer has its data.
  void end_when_ready(const pjrt::BufferView& buffer);

 private:
  void finish(bool failed) noexcept;
  std::unique_ptr<BegunEvent> begun_;
};

/// Records an execution on each device of a tracked launch, from `start` until that device is done.
/// Logical device k is devices[k].
void record_executions(const pjrt::Launch& launch, std::span<const pjrt::Device* const> devices,
                       std::string_view program, SourceLocation where,
                       TraceClock::time_point start);

}  // namespace meshard::internal
