#include "meshard/base/awaiting.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>

#include "meshard/base/threads.h"

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
  std::vector<std::thread::id> program_threads;
};

Registry& registry() {
  // Never destroyed: threads may wait while static objects are destroyed.
  static Registry* all = new Registry();
  return *all;
}

// Whether a thread runs the program. The main thread does until the process ends, which may wait
// for launches after the thread-local objects are gone.
struct ProgramThread {
  ~ProgramThread() {
    if (!is_noted || gettid() == getpid()) return;
    Registry& all = registry();
    std::lock_guard lock(all.mutex);
    std::erase(all.program_threads, std::this_thread::get_id());
  }
  bool is_noted = false;
};
thread_local ProgramThread program_thread;

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
  if (program_thread.is_noted || is_quiet_thread) return;
  program_thread.is_noted = true;
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  all.program_threads.push_back(std::this_thread::get_id());
}

bool is_program_thread() { return program_thread.is_noted; }

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
  AllAwaiting found;
  std::lock_guard lock(all.mutex);
  found.reached.assign(all.reached.begin(), all.reached.end());
  bool all_wait = true;
  for (std::thread::id thread : all.program_threads) {
    // The innermost one.
    auto own = std::find_if(all.waits.rbegin(), all.waits.rend(),
                            [&](const Registered& each) { return each.thread == thread; });
    if (own == all.waits.rend())
      all_wait = false;
    else
      found.program.push_back(own->what);
  }
  if (!all_wait) found.program.clear();
  for (const Registered& each : all.waits)
    if (std::find(all.program_threads.begin(), all.program_threads.end(), each.thread) ==
        all.program_threads.end())
      found.others.push_back(each.what);
  return found;
}

}  // namespace meshard::internal
