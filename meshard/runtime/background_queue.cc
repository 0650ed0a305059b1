#include "meshard/runtime/background_queue.h"

#include <utility>

namespace meshard {

BackgroundQueue::BackgroundQueue(std::function<Item()> make, std::size_t depth)
    : make_(std::move(make)), depth_(depth), thread_([this] { run(); }) {}

BackgroundQueue::~BackgroundQueue() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BackgroundQueue::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || made_.size() < depth_; });
    if (stop_) return;
    lock.unlock();
    Item item;
    std::exception_ptr failed;
    try {
      item = make_();
    } catch (...) {
      failed = std::current_exception();
    }
    lock.lock();
    ended_ = !item;
    failed_ = std::move(failed);
    if (item) made_.push_back(std::move(item));
    changed_.notify_all();
    if (ended_) return;
  }
}

BackgroundQueue::Item BackgroundQueue::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ended_ || !made_.empty(); });
  if (!made_.empty()) {
    Item item = std::move(made_.front());
    made_.pop_front();
    lock.unlock();
    changed_.notify_all();
    return item;
  }
  if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
  return nullptr;
}

}  // namespace meshard
