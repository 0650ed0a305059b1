// Lines that a thread of its own reads, so that work goes on while none comes.
#pragma once
#include <condition_variable>
#include <deque>
#include <iosfwd>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace serve {

/// A handle on the lines of a stream that are not taken yet.
class LineQueue {
 public:
  /// Begins to read. @pre the stream lives as long as the process, or ends.
  explicit LineQueue(std::istream& stream);

  /// The next line; none if the stream has ended, or, without `wait`, if there is none yet.
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
