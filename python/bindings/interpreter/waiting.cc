#include "python/bindings/interpreter/waiting.h"

#include <nanobind/stl/string.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/base/function_ref.h"
#include "meshard/base/stall_report.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/record_log.h"
#include "meshard/graph/sync.h"
#include "meshard/runtime/compile_runner.h"
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
// @param after_slice called with the lock @pre the lock is held
void wait_in_slices(const std::shared_ptr<Progress>& progress, FunctionRef<void()> after_slice) {
  for (;;) {
    {
      Unlocked unlocked;
      std::unique_lock lock(progress->mutex);
      if (progress->changed.wait_for(lock, kSignalSlice, [&] { return progress->remaining == 0; }))
        return;
    }
    after_slice();
    check_signals();
  }
}

// The same for waits that should not last.
void wait_in_slices(const std::shared_ptr<Progress>& progress, const char* what) {
  internal::StallWatch watch;
  wait_in_slices(progress, [&] {
    if (!watch.is_due()) return;
    Unlocked unlocked;
    internal::report_stall(what, watch.waited());
  });
}

// Runs a function on a thread of its own.
std::shared_ptr<Progress> start(std::function<void()> function) {
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
  return progress;
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
  std::shared_ptr<Progress> progress = start(std::move(function));
  wait_in_slices(progress, "a call of the runtime");
  if (progress->error) std::rethrow_exception(progress->error);
}

// --- compiles ------------------------------------------------------------------------------------

namespace {

// A function of a text, or null. Read and called with the interpreter's lock.
PyObject* compile_progress = nullptr;
std::atomic<bool> shows_compiles{false};

// Compiles of the main thread that run now.
std::atomic<int> compiles_running{0};

// Counts a compile as long as it lives.
struct CountedCompile {
  CountedCompile() { compiles_running.fetch_add(1); }
  ~CountedCompile() { compiles_running.fetch_sub(1); }
  CountedCompile(const CountedCompile&) = delete;
  CountedCompile& operator=(const CountedCompile&) = delete;
};

void show_compile(const std::string& text) {
  if (!compile_progress) return;
  nb::object callback = nb::borrow(compile_progress);  // which it may replace
  callback(text);
}

// Compiles of the main thread run on another thread, so that a signal handler can end the wait.
void run_compile(const std::string& name, std::function<void()> work) {
  if (!is_main_thread() && !shows_compiles.load()) return work();
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  Locked locked;
  const std::string quoted_name = cat('"', name, '"');
  show_compile(cat("compiling ", quoted_name));
  if (is_main_thread()) {
    auto shown = std::chrono::seconds(0);
    std::shared_ptr<Progress> progress = start([work = std::move(work)] {
      CountedCompile counted;
      work();
    });
    wait_in_slices(progress, [&] {
      const auto past = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin);
      if (past == shown) return;
      shown = past;
      show_compile(cat("compiling ", quoted_name, ", ", past.count(), " s"));
    });
    if (progress->error) std::rethrow_exception(progress->error);
  } else {
    Unlocked unlocked;
    work();
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", seconds());
  show_compile(cat("compiled ", quoted_name, " in ", text, " s"));
}

// A loop that runs in parts while it is recorded waits for devices, whose programs may call Python.
void run_unlocked(const std::function<void()>& work) {
  if (!holds_lock()) return work();
  Unlocked unlocked;
  work();
}

// At exit, static objects are destroyed that a running compile uses. Nobody waits for its program
// any more, so the process ends before that, with the same status.
void end_with_status(int status, void*) {
  if (compiles_running.load() == 0) return;
  std::fflush(nullptr);
  _exit(status);
}

}  // namespace

void end_before_running_compiles() {
  if (compiles_running.load() > 0) on_exit(end_with_status, nullptr);
}

void bind_compiles(nb::module_& module) {
  internal::compile_runner = run_compile;
  internal::set_run_ahead_runner(run_unlocked);
  module.def(
      "set_compile_progress",
      [](nb::object callback) {
        PyObject* before = compile_progress;
        compile_progress = callback.is_none() ? nullptr : callback.release().ptr();
        shows_compiles = compile_progress != nullptr;
        Py_XDECREF(before);
      },
      nb::arg("progress").none());
}

}  // namespace meshard::python
