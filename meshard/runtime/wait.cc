// Tested in tests/plugin/wait_test.cc.
#include "meshard/runtime/wait.h"

#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "meshard/runtime/device_array.h"
#include "meshard/runtime/lazy_evaluator.h"
#include "meshard/runtime/runtime.h"

namespace meshard {
namespace {

// So many are kept before those that are through are looked for.
constexpr std::size_t kFewLaunches = 32;

struct Remembered {
  std::mutex mutex;
  std::vector<std::shared_ptr<const pjrt::Launch>> launches;
  std::size_t look_at = kFewLaunches;
};

Remembered& remembered() {
  // Never destroyed: programs may be launched while static objects are.
  static Remembered* instance = new Remembered();
  return *instance;
}

bool is_through(const std::shared_ptr<const pjrt::Launch>& launch) {
  Result<bool> through = launch->is_ready();
  return !through.ok() || *through;
}

void wait_if_started() {
  if (!internal::is_forked_child.load(std::memory_order_relaxed)) internal::wait_for_launches();
}

// The main thread's. `exit` destroys the objects of the thread that calls it before it runs any
// handler and before it destroys any static object.
struct WaitsFirst {
  ~WaitsFirst() {
    // A library that is loaded later gets its static objects in the thread that loads it, and that
    // one may end at any time.
    if (gettid() == getpid()) wait_if_started();
  }
};

// Static objects are made in the main thread, and so is its own WaitsFirst.
[[maybe_unused]] const bool main_thread_waits = [] {
  thread_local WaitsFirst waits;
  return static_cast<void>(&waits), true;
}();

}  // namespace

void internal::remember_launch(pjrt::Launch launch) {
  Remembered& all = remembered();
  std::lock_guard lock(all.mutex);
  if (all.launches.size() >= all.look_at) {
    std::erase_if(all.launches, is_through);
    all.look_at = 2 * all.launches.size() + kFewLaunches;
  }
  all.launches.push_back(std::make_shared<const pjrt::Launch>(std::move(launch)));
}

void internal::wait_at_exit(std::uint64_t launches) {
  if (!std::has_single_bit(launches)) return;
  // Without memory for another handler the older ones have to do.
  (void)std::atexit(wait_if_started);
}

void internal::wait_for_launches() {
  Remembered& all = remembered();
  // A copy: others may wait for the same ones.
  std::vector<std::shared_ptr<const pjrt::Launch>> waited;
  {
    std::lock_guard lock(all.mutex);
    waited = all.launches;
  }
  for (const auto& launch : waited) (void)launch->await();
  if (const pjrt::Client* client = started_client()) client->await_launches();
}

void DeviceArray::wait(SourceLocation where) const {
  check_live(where);
  // All are waited for, also after one failed: nothing runs any more when this returns.
  std::optional<Error> failed;
  for (const pjrt::Buffer& buffer : buffers_) {
    Result<void> ready = buffer.await_ready();
    if (!ready.ok() && !failed)
      failed = ready.error().at(where).with_note(
          cat("while waiting for ", type_, " on device ", buffer.device().id()));
  }
  if (failed) throw *failed;
}

void LazyEvaluator::wait() { internal::wait_for_launches(); }

}  // namespace meshard
