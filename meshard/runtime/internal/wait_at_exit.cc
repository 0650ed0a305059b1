// Tested in tests/ends/ends_test.py.
#include "meshard/runtime/internal/wait_at_exit.h"

#include <unistd.h>

#include <cstdlib>

#include "meshard/pjrt/client.h"
#include "meshard/runtime/internal/fabric.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/runtime/internal/released_arrays.h"
#include "meshard/runtime/runtime.h"

namespace meshard {
namespace {

void wait_if_started() {
  if (internal::is_forked_child.load(std::memory_order_relaxed)) return;
  for (const pjrt::Client* client : started_clients()) client->await_last_launches();
  internal::ReleasedArrays::of_thread().destroy();
  pjrt::finish_callbacks();
  // Messages still arrive, which are passed to the plugin.
  if (Fabric* fabric = process_runtime().platforms.default_fabric()) fabric->finish();
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

void internal::add_exit_handler() {
  // If registering fails for lack of memory, the earlier handlers must suffice.
  (void)std::atexit(wait_if_started);
}

}  // namespace meshard
