#include "meshard/runtime/device_loader.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

namespace meshard {

struct BackgroundQueue::State {
  State(std::function<Item()> maker, std::size_t most)
      : make(std::move(maker)), depth(most), thread([this] { run(); }) {}
  ~State() {
    {
      std::lock_guard lock(mutex);
      stop = true;
    }
    changed.notify_all();
    thread.join();
  }

  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return stop || made.size() < depth; });
      if (stop) return;
      lock.unlock();
      Item item;
      std::exception_ptr failure;
      try {
        item = make();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      ended = !item;
      failed = std::move(failure);
      if (item) made.push_back(std::move(item));
      changed.notify_all();
      if (ended) return;
    }
  }

  Item take() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return ended || !made.empty(); });
    if (!made.empty()) {
      Item item = std::move(made.front());
      made.pop_front();
      lock.unlock();
      changed.notify_all();
      return item;
    }
    if (failed) std::rethrow_exception(std::exchange(failed, nullptr));
    return nullptr;
  }

  std::function<Item()> make;
  const std::size_t depth;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Item> made;  // guarded by mutex, like all below
  std::exception_ptr failed;
  bool ended = false;  // `make` will not be called again
  bool stop = false;
  std::thread thread;  // the last member: it uses the others
};

BackgroundQueue::BackgroundQueue(std::function<Item()> make, std::size_t depth)
    : state_(std::make_unique<State>(std::move(make), depth)) {}
BackgroundQueue::~BackgroundQueue() = default;
BackgroundQueue::Item BackgroundQueue::take() { return state_->take(); }

}  // namespace meshard
