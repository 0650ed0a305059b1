#include "examples/serve/line_queue.h"

#include <istream>
#include <thread>
#include <utility>

namespace serve {
namespace {
constexpr std::size_t kMostLines = 1024;  // maximum number of lines read ahead
}

LineQueue::LineQueue(std::istream& stream) : shared_(std::make_shared<Shared>()) {
  std::thread([&stream, shared = shared_] {
    std::string line;
    while (std::getline(stream, line)) {
      std::unique_lock lock(shared->mutex);
      shared->changed.wait(lock, [&] { return shared->lines.size() < kMostLines; });
      shared->lines.push_back(std::exchange(line, {}));
      shared->changed.notify_all();
    }
    std::lock_guard lock(shared->mutex);
    shared->ended = true;
    shared->changed.notify_all();
  }).detach();
}

std::optional<std::string> LineQueue::next(bool wait) {
  std::unique_lock lock(shared_->mutex);
  if (wait) shared_->changed.wait(lock, [&] { return !shared_->lines.empty() || shared_->ended; });
  if (shared_->lines.empty()) return std::nullopt;
  std::string line = std::move(shared_->lines.front());
  shared_->lines.pop_front();
  shared_->changed.notify_all();
  return line;
}

}  // namespace serve
