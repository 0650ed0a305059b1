// Tested in tests/plugin/launches_test.cc.
#include "meshard/pjrt/internal/callbacks.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "meshard/base/advice.h"
#include "meshard/base/cat.h"
#include "meshard/pjrt/internal/process_end.h"

namespace meshard::pjrt::internal {
namespace {

void call_now(const std::function<void()>& call) noexcept {
  std::string what;
  try {
    call();
    return;
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
    what = "an exception of a type that is not a std::exception";
  }
  try {
    meshard::internal::advise(
        {"pjrt.callback",
         cat("[pjrt] a callback threw an exception, which was discarded: ", what),
         {}});
  } catch (...) {  // thrown by the handler
  }
}

class Callbacks {
 public:
  // Moves from `call` last, so that after an exception the caller still has it.
  void add(std::function<void()>& call) {
    std::unique_lock lock(mutex_);
    if (!running_) {
      // Never joined: the process may end during a callback.
      std::thread([this] { work(); }).detach();
      running_ = true;
    }
    waiting_.push_back(std::move(call));
    ++given_;
    changed_.notify_all();
  }
  void finish() {
    std::unique_lock lock(mutex_);
    std::uint64_t until = given_;
    changed_.wait(lock, [&] { return done_ >= until; });
  }

 private:
  void work() {
    never_hold_this_thread();  // finish() waits for it
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return !waiting_.empty(); });
      std::function<void()> call = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      call_now(call);
      call = {};  // its captures may run user code too
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::uint64_t given_ = 0, done_ = 0;
  bool running_ = false;
};

Callbacks& callbacks() {
  static auto* instance = new Callbacks;  // plugins may call back until the process ends
  return *instance;
}

}  // namespace

void call_soon(std::function<void()> call) noexcept {
  try {
    callbacks().add(call);
  } catch (const std::exception&) {
    call_now(call);  // no thread or memory: call it here instead
  }
}

void finish_callbacks() { callbacks().finish(); }

}  // namespace meshard::pjrt::internal
