// What another thread makes ahead of its use.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace meshard {

/// Move-nothing owner of a thread that makes items ahead of their use, at most `depth` of them.
/// take() is for one thread at a time.
class BackgroundQueue {
 public:
  using Item = std::shared_ptr<void>;
  /// Calls `make` on a thread of its own until it returns null, throws, or the queue is destroyed.
  /// @pre depth >= 1
  BackgroundQueue(std::function<Item()> make, std::size_t depth);
  /// Waits for the call of `make` that is under way, and drops what was made and not taken.
  ~BackgroundQueue();
  BackgroundQueue(const BackgroundQueue&) = delete;
  BackgroundQueue& operator=(const BackgroundQueue&) = delete;

  /// The next item; waits for it. Null after the last, and from then on.
  /// @error what `make` threw, once, after the items that were made before.
  Item take();

 private:
  void run();

  std::function<Item()> make_;
  const std::size_t depth_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> made_;  // under mutex_, as all below
  std::exception_ptr failed_;
  bool ended_ = false;  // `make` will not be called again
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace meshard
