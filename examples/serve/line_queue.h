// Lines of a stream, read by a background thread so that the caller need not block.
#pragma once
#include <condition_variable>
#include <deque>
#include <iosfwd>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace serve {

/// Handle on the unread lines of a stream.
class LineQueue {
 public:
  /// Starts reading. @pre the stream lives until the process exits, or reaches its end.
  explicit LineQueue(std::istream& stream);

  /// The next line. None at the end of the stream, or, without `wait`, if no line is available yet.
  std::optional<std::string> next(bool wait);

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::string> lines;
    bool ended = false;
  };
  std::shared_ptr<Shared> shared_;
};

}  // namespace serve
