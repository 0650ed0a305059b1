// Tested in tests/plugin/wait_test.cc.
#include "meshard/runtime/wait.h"

#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <optional>

#include "meshard/base/stall.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/lazy_evaluator.h"
#include "meshard/runtime/runtime.h"

namespace meshard {
namespace {

void wait_if_started() {
  if (internal::is_forked_child.load(std::memory_order_relaxed)) return;
  for (const pjrt::Client* client : started_clients()) client->await_last_launches();
  pjrt::finish_callbacks();
}

// Thread-local to the main thread. `exit` destroys the thread-local objects of the calling thread
// before it runs any handler or destroys any static object.
struct WaitsFirst {
  ~WaitsFirst() {
    // The static objects of a library that is loaded later are created in the thread that loads it,
    // which may end at any time.
    if (gettid() == getpid()) wait_if_started();
  }
};

// Static objects are initialized in the main thread, so its own WaitsFirst is created here.
[[maybe_unused]] const bool main_thread_waits = [] {
  thread_local WaitsFirst waits;
  return static_cast<void>(&waits), true;
}();

}  // namespace

void internal::wait_at_exit(std::uint64_t launches) {
  if (!std::has_single_bit(launches)) return;
  // If registering fails for lack of memory, the earlier handlers must suffice.
  (void)std::atexit(wait_if_started);
}

void internal::wait_for_launches() {
  for (const pjrt::Client* client : started_clients()) client->await_launches();
}

void DeviceArray::wait(SourceLocation where) const {
  check_live(where);
  internal::WaitPlace place(where);
  // Wait for all buffers, even after one failed: nothing is running when this returns.
  std::optional<Error> failed;
  for (const pjrt::Buffer& buffer : buffers_) {
    Result<void> ready = buffer.await_ready();
    if (!ready.ok() && !failed)
      failed = ready.error().at(where).with_note(cat("while waiting for ", type_, " on device ",
                                                     buffer.device().id(),
                                                     buffer.device().of_platform()));
  }
  if (failed) {
    internal::forget_failed_launches();
    throw *failed;
  }
}

void LazyEvaluator::wait() { internal::wait_for_launches(); }

}  // namespace meshard
