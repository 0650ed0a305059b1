#include "python/bindings/interpreter/waiting.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "meshard/base/stall_report.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/sync.h"
#include "meshard/runtime/device_array.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/release_later.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

// How long a signal may have to wait for its handler.
constexpr std::chrono::milliseconds kSignalSlice{50};

// What a waiting thread shares with the threads that end the wait, which may outlive it.
struct Progress {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t remaining = 0;
  std::exception_ptr error;
};

// Waits until nothing remains, and runs Python's signal handlers meanwhile.
// @pre the lock is held
void wait_in_slices(const std::shared_ptr<Progress>& progress, const char* what) {
  internal::StallWatch watch;
  for (;;) {
    {
      Unlocked unlocked;
      std::unique_lock lock(progress->mutex);
      if (progress->changed.wait_for(lock, kSignalSlice, [&] { return progress->remaining == 0; }))
        return;
      if (watch.is_due()) {
        lock.unlock();
        internal::report_stall(what, watch.waited());
      }
    }
    check_signals();
  }
}

// The events of buffers that are not ready yet.
std::vector<pjrt::Event> unready(std::span<const Tensor> tensors) {
  std::vector<pjrt::Event> events;
  for (const Tensor& tensor : tensors) {
    const Storage* storage = tensor.value().storage();
    if (!storage || storage->kind() != Storage::Kind::kDevice) continue;
    const auto& array = static_cast<const DeviceArray&>(*storage);
    if (!array.is_live()) continue;  // the wait that follows reports it
    for (std::size_t i = 0; i < array.num_shards(); ++i) {
      Result<pjrt::Event> event = array.buffers()[i].ready_event();
      if (!event.ok()) continue;
      if (Result<bool> ready = event->is_ready(); ready.ok() && !*ready)
        events.push_back(*std::move(event));
    }
  }
  return events;
}

}  // namespace

void check_signals() {
  if (PyErr_CheckSignals() != 0) nb::raise_python_error();
}

void wait_for(std::span<const Tensor> tensors, SourceLocation where) {
  release_collected();
  std::vector<Tensor> all(tensors.begin(), tensors.end());
  const bool handles_signals = is_main_thread();
  std::vector<pjrt::Event> events;
  {
    Unlocked unlocked;
    check_not_forked(where);
    compute(all, where);
    if (handles_signals) events = unready(all);
  }
  if (!events.empty()) {
    auto progress = std::make_shared<Progress>();
    progress->remaining = events.size();
    for (const pjrt::Event& event : events) {
      auto finish = [progress](const Result<void>&) {
        std::lock_guard lock(progress->mutex);
        if (--progress->remaining == 0) progress->changed.notify_all();
      };
      if (!event.on_ready(finish, pjrt::CallbackThread::kPlugins).ok()) finish({});
    }
    internal::WaitPlace place(where);
    wait_in_slices(progress, "values on devices");
  }
  Unlocked unlocked;
  internal::sync_tensors(std::move(all), where);
}

void run_waiting(std::function<void()> function) {
  release_collected();
  if (!is_main_thread()) {
    Unlocked unlocked;
    return function();
  }
  auto progress = std::make_shared<Progress>();
  progress->remaining = 1;
  std::thread([progress, function = std::move(function)]() mutable {
    std::exception_ptr error;
    try {
      function();
    } catch (...) {
      error = std::current_exception();
    }
    function = nullptr;
    std::lock_guard lock(progress->mutex);
    progress->error = std::move(error);
    progress->remaining = 0;
    progress->changed.notify_all();
  }).detach();
  wait_in_slices(progress, "a call of the runtime");
  if (progress->error) std::rethrow_exception(progress->error);
}

}  // namespace meshard::python
