// A queue that another thread fills in advance.
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

/// Immovable owner of a thread that makes up to `depth` items before they are used. Only one thread
/// at a time may call take().
class BackgroundQueue {
 public:
  using Item = std::shared_ptr<void>;
  /// Calls `make` on its own thread until it returns null or throws, or the queue is destroyed.
  /// @pre depth >= 1
  BackgroundQueue(std::function<Item()> make, std::size_t depth);
  /// Waits for the current call of `make`, and drops items that were not taken.
  ~BackgroundQueue();
  BackgroundQueue(const BackgroundQueue&) = delete;
  BackgroundQueue& operator=(const BackgroundQueue&) = delete;

  /// Returns the next item, waiting if necessary. Null after the last item.
  /// @error what `make` threw: rethrown once, after the items that were made before.
  Item take();

 private:
  void run();

  std::function<Item()> make_;
  const std::size_t depth_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> made_;  // guarded by mutex_, like all below
  std::exception_ptr failed_;
  bool ended_ = false;  // `make` will not be called again
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace meshard
