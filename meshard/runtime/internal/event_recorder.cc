// Tested in tests/plugin/trace_events_test.cc.
#include "meshard/runtime/internal/event_recorder.h"

#include <utility>

namespace meshard::internal {
namespace {

double microseconds(TraceClock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

}  // namespace

EventRecorder::EventRecorder(std::size_t most_events) : most_events_(most_events) {
  threads_.emplace(std::this_thread::get_id(), 0);
}

void EventRecorder::add(TraceEvent event, TraceClock::time_point start,
                        TraceClock::time_point end) {
  event.start = microseconds(start - begin_);
  event.duration = microseconds(end - start);
  std::lock_guard lock(mutex_);
  if (stopped_) return;
  if (events_.size() >= most_events_)
    ++left_out_;
  else
    events_.push_back(std::move(event));
}

int EventRecorder::thread_number() {
  std::lock_guard lock(mutex_);
  return threads_.emplace(std::this_thread::get_id(), static_cast<int>(threads_.size()))
      .first->second;
}

void EventRecorder::expect() {
  std::lock_guard lock(mutex_);
  ++expected_;
}

void EventRecorder::arrived() {
  std::lock_guard lock(mutex_);
  // Notify under the lock: a waiting thread may destroy this recorder right after.
  if (--expected_ == 0) all_arrived_.notify_all();
}

void EventRecorder::stop() {
  std::unique_lock lock(mutex_);
  all_arrived_.wait(lock, [this] { return expected_ == 0; });
  stopped_ = true;
}

namespace {
thread_local const HostSpan* innermost = nullptr;
}  // namespace

std::unique_ptr<BegunEvent> BegunEvent::make(TraceEvent::Track track, std::string_view category,
                                             std::string_view what, SourceLocation where) {
  std::shared_ptr<EventRecorder> recorder = current_recorder_of_events();
  if (!recorder) return nullptr;
  auto begun = std::make_unique<BegunEvent>();
  begun->recorder = std::move(recorder);
  begun->event = {.track = track,
                  .category = std::string(category),
                  .what = std::string(what),
                  .place = where.to_string()};
  begun->start = TraceClock::now();
  return begun;
}

void BegunEvent::end(bool failed) {
  event.failed = failed;
  recorder->add(std::move(event), start, TraceClock::now());
}

void HostSpan::begin(std::string_view category, std::string_view what, SourceLocation where) {
  begun_ = BegunEvent::make(TraceEvent::Track::kHost, category, what, where);
  if (!begun_) return;
  begun_->event.number = begun_->recorder->thread_number();
  outer_ = std::exchange(innermost, this);
}

void HostSpan::finish() noexcept {
  innermost = outer_;
  begun_->end(/*failed=*/false);
  begun_.reset();
}

void TransferSpan::begin(std::string_view category, std::string_view what,
                         const pjrt::Device& device, std::uint64_t bytes, SourceLocation where) {
  begun_ = BegunEvent::make(TraceEvent::Track::kTransfer, category, what, where);
  if (!begun_) return;
  TraceEvent& event = begun_->event;
  event.number = device.id();
  event.platform = device.platform();
  event.bytes = bytes;
  if (!where.known() && innermost) event.place = innermost->begun_->event.place;
}

void TransferSpan::end_when_ready(const pjrt::BufferView& buffer) {
  if (!begun_) return;
  Result<pjrt::Event> ready = buffer.ready_event();
  if (!ready.ok()) return finish(/*failed=*/true);
  std::shared_ptr<BegunEvent> begun = std::move(begun_);
  begun->recorder->expect();
  Result<void> waiting = ready->on_ready(
      [begun](const Result<void>& outcome) {
        begun->end(!outcome.ok());
        begun->recorder->arrived();
      },
      pjrt::CallbackThread::kPlugins);
  if (!waiting.ok()) begun->recorder->arrived();
}

void TransferSpan::finish(bool failed) noexcept {
  begun_->end(failed);
  begun_.reset();
}

void record_executions(const pjrt::Launch& launch, std::span<const pjrt::Device* const> devices,
                       std::string_view program, SourceLocation where,
                       TraceClock::time_point start) {
  std::shared_ptr<EventRecorder> recorder = current_recorder_of_events();
  if (!recorder) return;
  TraceEvent event{.track = TraceEvent::Track::kDevice,
                   .category = "execute",
                   .what = std::string(program),
                   .place = where.to_string()};
  for (std::size_t k = 0; k < devices.size(); ++k) {
    event.number = devices[k]->id();
    event.platform = devices[k]->platform();
    recorder->expect();
    Result<void> waiting = launch.on_ready(
        k,
        [recorder, event, start](const Result<void>& outcome) mutable {
          event.failed = !outcome.ok();
          recorder->add(std::move(event), start, TraceClock::now());
          recorder->arrived();
        },
        pjrt::CallbackThread::kPlugins);
    if (!waiting.ok()) recorder->arrived();
  }
}

}  // namespace meshard::internal
