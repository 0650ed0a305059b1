// Tested in tests/plugin/trace_events_test.cc.
#include "meshard/runtime/trace_events.h"

#include <algorithm>
#include <mutex>
#include <tuple>
#include <utility>

#include "meshard/processes/processes.h"
#include "meshard/processes/wait_observer.h"
#include "meshard/runtime/internal/chrome_trace.h"
#include "meshard/runtime/internal/event_recorder.h"
#include "meshard/runtime/internal/run_trace.h"

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
  return internal::write_trace_file(path, to_json());
}

Result<void> TraceSession::write_all(const std::string& path) {
  stop();
  Processes run = processes();
  if (run.size() == 1) return write(path);
  if (!recorder_)
    return Error(ErrorCode::kFailedPrecondition, "[trace] the session was moved from");
  internal::ProcessTrace own;
  own.begin =
      std::chrono::duration<double, std::micro>(recorder_->begin().time_since_epoch()).count();
  own.left_out = left_out();
  own.events = events_;
  return internal::write_trace_of_run(run, std::move(own), path);
}

}  // namespace meshard
