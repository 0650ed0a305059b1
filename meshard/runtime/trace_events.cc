// Tested in tests/plugin/trace_events_test.cc.
#include "meshard/runtime/trace_events.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <tuple>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/packed_fields.h"
#include "meshard/processes/clock_offset.h"
#include "meshard/processes/processes.h"
#include "meshard/processes/wait_observer.h"
#include "meshard/runtime/internal/chrome_trace.h"
#include "meshard/runtime/internal/event_recorder.h"

namespace meshard {
namespace {

using Track = TraceEvent::Track;

std::mutex current_mutex;
std::shared_ptr<internal::EventRecorder> current;  // guarded by current_mutex

// Adjusts start times: a device runs programs in sequence, and the plugin reports only when each
// one ended.
void start_where_the_one_before_ended(std::vector<TraceEvent>& events) {
  std::vector<TraceEvent*> executions;
  for (TraceEvent& event : events)
    if (event.track == Track::kDevice) executions.push_back(&event);
  std::sort(executions.begin(), executions.end(), [](const TraceEvent* a, const TraceEvent* b) {
    return std::tuple(std::string_view(a->platform), a->number, a->start + a->duration, a->start) <
           std::tuple(std::string_view(b->platform), b->number, b->start + b->duration, b->start);
  });
  for (std::size_t i = 1; i < executions.size(); ++i) {
    if (executions[i]->number != executions[i - 1]->number ||
        executions[i]->platform != executions[i - 1]->platform)
      continue;
    double end = executions[i]->start + executions[i]->duration;
    double free = executions[i - 1]->start + executions[i - 1]->duration;
    executions[i]->start = std::max(executions[i]->start, free);
    executions[i]->duration = std::max(0.0, end - executions[i]->start);
  }
}

// Records a wait for other processes as an event of the host.
void record_wait(std::string_view category, std::string_view what, std::string_view place,
                 std::chrono::steady_clock::time_point start,
                 std::chrono::steady_clock::time_point end) {
  std::shared_ptr<internal::EventRecorder> recorder = internal::current_recorder_of_events();
  if (!recorder) return;
  TraceEvent event{.category = std::string(category),
                   .what = std::string(what),
                   .place = std::string(place),
                   .number = recorder->thread_number()};
  recorder->add(std::move(event), start, end);
}

// Writes the text of a trace.
// @error the system's error, with the path
Result<void> write_trace_file(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  int reason = errno;
  if (file && std::fclose(file) != 0 && written) {
    written = false;
    reason = errno;
  }
  if (written) return {};
  return Error(ErrorCode::kUnavailable,
               cat("[trace] cannot write ", path, ": ", std::strerror(reason)));
}

// Values of the store have at most 256 MiB.
constexpr std::size_t kPiece = std::size_t{32} << 20;

double in_microseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

// Sends when process 0 asks, so that it has the events of one process at a time in the store.
Result<void> send_trace(Store& store, const std::string& key, const std::string& bytes) {
  MESHARD_RETURN_IF_ERROR(store.get(key + "/asked"));
  std::size_t pieces = (bytes.size() + kPiece - 1) / kPiece;
  for (std::size_t i = 0; i < pieces; ++i)
    MESHARD_RETURN_IF_ERROR(store.put(cat(key, "/", i), bytes.substr(i * kPiece, kPiece)));
  return store.put(key + "/pieces", cat(pieces));
}

Result<internal::ProcessTrace> receive_trace(Store& store, const std::string& key) {
  MESHARD_RETURN_IF_ERROR(store.put(key + "/asked", ""));
  MESHARD_ASSIGN_OR_RETURN(std::string count, store.get(key + "/pieces"));
  std::size_t pieces = 0;
  std::from_chars(count.data(), count.data() + count.size(), pieces);
  std::string bytes;
  for (std::size_t i = 0; i < pieces; ++i) {
    MESHARD_ASSIGN_OR_RETURN(std::string piece, store.get(cat(key, "/", i)));
    bytes += piece;
    MESHARD_RETURN_IF_ERROR(store.put(cat(key, "/", i), ""));  // frees its memory
  }
  return from_packed<internal::ProcessTrace>(bytes, "trace");
}

Result<void> collect_and_write(const Processes& run, const std::string& prefix,
                               internal::ProcessTrace own, const std::string& path) {
  std::vector<internal::ProcessTrace> all;
  all.push_back(std::move(own));
  for (int rank = 1; rank < run.size(); ++rank) {
    MESHARD_ASSIGN_OR_RETURN(internal::ProcessTrace trace,
                             receive_trace(run.store(), cat(prefix, rank)));
    all.push_back(std::move(trace));
  }
  return write_trace_file(path, internal::chrome_trace_of_run(all));
}

// Called by all processes with their own trace, whose `begin` is by the clock of this process.
// Process 0 writes the file.
// @error those of the store; in all processes, the system's if the file cannot be written
Result<void> write_trace_of_run(const Processes& run, internal::ProcessTrace trace,
                                const std::string& path) {
  static std::atomic<int> calls{0};
  std::string prefix = cat("meshard/trace/", calls++, "/"), result = prefix + "result";
  const ProcessInfo& self = run.members()[static_cast<std::size_t>(run.rank())];
  trace.rank = run.rank();
  trace.host = self.host;
  trace.pid = self.pid;
  MESHARD_ASSIGN_OR_RETURN(ClockOffset clock, clock_offset(run));
  trace.begin += in_microseconds(clock.offset);
  trace.precision = in_microseconds(clock.precision);
  if (run.rank() != 0) {
    MESHARD_RETURN_IF_ERROR(send_trace(run.store(), cat(prefix, run.rank()), to_packed(trace)));
    MESHARD_ASSIGN_OR_RETURN(std::string failure, run.store().get(result));
    if (failure.empty()) return {};
    return Error(ErrorCode::kUnavailable, cat("[trace] in process 0: ", failure));
  }
  Result<void> written = collect_and_write(run, prefix, std::move(trace), path);
  MESHARD_RETURN_IF_ERROR(run.store().put(result, written.ok() ? "" : written.error().message()));
  return written;
}

}  // namespace

std::shared_ptr<internal::EventRecorder> internal::current_recorder_of_events() {
  std::lock_guard lock(current_mutex);
  return current;
}

TraceSession start_trace(const TraceOptions& options, SourceLocation where) {
  std::lock_guard lock(current_mutex);
  if (current)
    throw Error(ErrorCode::kFailedPrecondition,
                "[start_trace] a trace is already active: stop it before starting another", where);
  current = std::make_shared<internal::EventRecorder>(options.most_events);
  internal::recording_events.store(true, std::memory_order_relaxed);
  wait_observer.store(&record_wait, std::memory_order_release);
  return TraceSession(current);
}

TraceSession& TraceSession::operator=(TraceSession&& other) noexcept {
  stop();
  recorder_ = std::move(other.recorder_);
  stopped_ = other.stopped_;
  events_ = std::move(other.events_);
  return *this;
}

void TraceSession::stop() {
  if (!recorder_ || stopped_) return;
  stopped_ = true;
  {
    std::lock_guard lock(current_mutex);
    current.reset();
    internal::recording_events.store(false, std::memory_order_relaxed);
    wait_observer.store(nullptr, std::memory_order_relaxed);
  }
  recorder_->stop();
  events_ = recorder_->events();
  start_where_the_one_before_ended(events_);
  // If two events start at the same time, the longer one is the outer one.
  std::stable_sort(events_.begin(), events_.end(), [](const TraceEvent& a, const TraceEvent& b) {
    return a.start != b.start ? a.start < b.start : a.duration > b.duration;
  });
}

const std::vector<TraceEvent>& TraceSession::events() {
  stop();
  return events_;
}

std::uint64_t TraceSession::left_out() {
  stop();
  return recorder_ ? recorder_->left_out() : 0;
}

std::string TraceSession::to_json() {
  stop();
  return internal::chrome_trace(events_, left_out());
}

Result<void> TraceSession::write(const std::string& path) {
  return write_trace_file(path, to_json());
}

Result<void> TraceSession::write_all(const std::string& path) {
  stop();
  Processes run = processes();
  if (run.size() == 1) return write(path);
  if (!recorder_)
    return Error(ErrorCode::kFailedPrecondition, "[trace] the session was moved from");
  internal::ProcessTrace own;
  own.begin = in_microseconds(recorder_->begin().time_since_epoch());
  own.left_out = left_out();
  own.events = events_;
  return write_trace_of_run(run, std::move(own), path);
}

}  // namespace meshard
