// Tested in tests/plugin/trace_events_test.cc.
#include "meshard/runtime/trace_events.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

#include "meshard/base/json_writer.h"
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

// Processes of the trace, which group tracks of the same kind.
constexpr int kHostProcess = 1, kDeviceProcess = 2, kTransferProcess = 3;
// Transfers of one device may overlap and then need separate tracks.
constexpr int kTracksOfADevice = 1000;

class ChromeTrace {
 public:
  std::string write(const std::vector<TraceEvent>& events, std::uint64_t left_out) {
    json_.begin_object().key("traceEvents").begin_array();
    for (const TraceEvent& event : events)
      if (event.track != Track::kHost)
        platforms_.emplace(event.platform, static_cast<int>(platforms_.size()));
    name_process(kHostProcess, "host");
    if (platforms_.empty()) platforms_.emplace("", 0);
    for (const auto& [platform, number] : platforms_) {
      std::string of = platforms_.size() > 1 ? cat(" of ", platform) : std::string();
      name_process(kDeviceProcess + 2 * number, "devices" + of);
      name_process(kTransferProcess + 2 * number, "transfers" + of);
    }
    for (const TraceEvent& event : events) add(event);
    json_.end_array();
    json_.member("displayTimeUnit", "ms");
    json_.key("otherData").begin_object();
    json_.member("producer", "meshard").member("events_left_out", left_out);
    json_.end_object().end_object();
    return std::move(json_).text();
  }

 private:
  // Each platform has two processes.
  int process_of(const TraceEvent& event) const {
    if (event.track == Track::kHost) return kHostProcess;
    int first = event.track == Track::kDevice ? kDeviceProcess : kTransferProcess;
    return first + 2 * platforms_.at(event.platform);
  }

  void add(const TraceEvent& event) {
    int thread = event.track == Track::kTransfer ? transfer_track(event) : event.number;
    int process = process_of(event);
    if (named_.emplace(std::pair(process, thread), 0.0).second)
      name_thread(process, thread, track_name(event, thread));
    json_.begin_object();
    json_.member("name", cat(event.category, " ", event.what)).member("cat", event.category);
    json_.member("ph", "X").member("pid", process).member("tid", thread);
    json_.member("ts", event.start).member("dur", event.duration);
    json_.key("args").begin_object();
    if (!event.place.empty()) json_.member("place", event.place);
    if (event.bytes) json_.member("bytes", *event.bytes);
    if (event.failed) json_.member("failed", true);
    json_.end_object().end_object();
  }

  // The first of the device's tracks that is free when the transfer starts.
  int transfer_track(const TraceEvent& event) {
    std::vector<double>& free = free_[{event.platform, event.number}];
    std::size_t i = 0;
    while (i < free.size() && free[i] > event.start) ++i;
    if (i == free.size()) free.push_back(0);
    free[i] = event.start + event.duration;
    return event.number * kTracksOfADevice + static_cast<int>(i);
  }

  static std::string track_name(const TraceEvent& event, int thread) {
    if (event.track == Track::kHost) return cat("thread ", event.number);
    int further = event.track == Track::kTransfer ? thread % kTracksOfADevice : 0;
    return cat("device ", event.number, further == 0 ? "" : cat(" (", further + 1, ")"));
  }

  void name_process(int process, std::string_view name) {
    metadata("process_name", process, 0, "name", name);
    metadata("process_sort_index", process, 0, "sort_index", process);
  }
  void name_thread(int process, int thread, const std::string& name) {
    metadata("thread_name", process, thread, "name", std::string_view(name));
    metadata("thread_sort_index", process, thread, "sort_index", thread);
  }
  template <class T>
  void metadata(std::string_view what, int process, int thread, std::string_view key,
                const T& value) {
    json_.begin_object().member("name", what).member("ph", "M");
    json_.member("pid", process).member("tid", thread);
    json_.key("args").begin_object().member(key, value).end_object().end_object();
  }

  JsonWriter json_;
  std::map<std::pair<int, int>, double> named_;
  std::map<std::string, int> platforms_;  // the number of each platform
  std::map<std::pair<std::string, int>, std::vector<double>>
      free_;  // by device: when each of its tracks becomes free
};

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
  return ChromeTrace().write(events_, left_out());
}

Result<void> TraceSession::write(const std::string& path) {
  std::string text = to_json();
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

}  // namespace meshard
