#include "meshard/base/awaiting.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "meshard/base/quiet_thread.h"

namespace meshard::internal {
namespace {

struct Registered {
  std::thread::id thread;
  Awaiting what;
};

struct Registry {
  std::mutex mutex;  // of what follows
  std::vector<Registered> waits;
  std::map<std::string, std::uint64_t, std::less<>> reached;
  std::atomic<std::thread::id> program_thread{};
};

Registry& registry() {
  // Never destroyed: threads may wait while static objects are destroyed.
  static Registry* all = new Registry();
  return *all;
}

}  // namespace

AwaitingScope::AwaitingScope(Awaiting what) {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  all.waits.push_back({std::this_thread::get_id(), std::move(what)});
}

AwaitingScope::~AwaitingScope() {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  auto own = std::find_if(all.waits.rbegin(), all.waits.rend(), [](const Registered& each) {
    return each.thread == std::this_thread::get_id();
  });
  all.waits.erase(std::next(own).base());
}

void note_program_thread() {
  if (!is_quiet_thread)
    registry().program_thread.store(std::this_thread::get_id(), std::memory_order_relaxed);
}

bool is_program_thread() {
  return registry().program_thread.load(std::memory_order_relaxed) == std::this_thread::get_id();
}

void reach_step(std::string_view channel, std::uint64_t number) {
  note_program_thread();
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  auto found = all.reached.find(channel);
  if (found == all.reached.end()) found = all.reached.emplace(channel, 0).first;
  found->second = std::max(found->second, number);
}

AllAwaiting all_awaiting() {
  Registry& all = registry();
  const std::thread::id program = all.program_thread.load(std::memory_order_relaxed);
  AllAwaiting found;
  std::lock_guard lock(all.mutex);
  found.reached.assign(all.reached.begin(), all.reached.end());
  for (const Registered& each : all.waits)
    if (each.thread == program)
      found.program.assign(1, each.what);  // the innermost one
    else
      found.others.push_back(each.what);
  return found;
}

}  // namespace meshard::internal
