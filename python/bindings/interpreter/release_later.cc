#include "python/bindings/interpreter/release_later.h"

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

namespace meshard::python {
namespace {

struct Collected {
  std::mutex mutex;
  std::vector<std::function<void()>> releases;
  std::atomic<bool> any{false};
};

// Never destroyed: threads of the plugin may outlive static objects.
Collected& collected() {
  static auto* all = new Collected;
  return *all;
}

}  // namespace

void release_later(std::function<void()> release) {
  Collected& all = collected();
  std::lock_guard lock(all.mutex);
  all.releases.push_back(std::move(release));
  if (all.any.exchange(true)) return;
  // The main thread runs them between two bytecodes, unless another call is sooner.
  if (Py_IsInitialized())
    Py_AddPendingCall(
        [](void*) {
          release_collected();
          return 0;
        },
        nullptr);
}

void release_collected() {
  Collected& all = collected();
  if (!all.any.load(std::memory_order_relaxed)) return;
  std::vector<std::function<void()>> now;
  {
    std::lock_guard lock(all.mutex);
    now.swap(all.releases);
    all.any = false;
  }
  for (auto& release : now) release();
}

ObjectRef share(nanobind::object object) {
  PyObject* raw = object.release().ptr();
  return ObjectRef(raw, [](PyObject* dropped) {
    if (dropped) release_later([dropped] { Py_DECREF(dropped); });
  });
}

}  // namespace meshard::python
