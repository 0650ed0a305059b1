// A queue that another thread fills in advance.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>

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
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace meshard
