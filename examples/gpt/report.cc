#include "examples/gpt/report.h"

#include <unistd.h>

#include <cstdio>

namespace gpt {

Progress::Progress(std::int64_t steps) : steps_(steps), terminal_(isatty(STDOUT_FILENO) != 0) {}

void Progress::operator()(std::int64_t step, double loss) {
  Clock::time_point now = Clock::now();
  if (parts_ < 0) {  // starts the clock after the first step, which compiles
    first_ = step;
    began_ = now;
    smooth_ = loss;
    parts_ = 0;
  }
  smooth_ += (loss - smooth_) / 20;
  bool last = step == steps_, first = step == first_;
  if (terminal_) {
    if (!last && !first && now - shown_ < std::chrono::milliseconds(100)) return;
  } else {
    if (!last && !first && step * 20 / steps_ == parts_) return;
    parts_ = step * 20 / steps_;
  }
  shown_ = now;
  double seconds = std::chrono::duration<double>(now - began_).count();
  double rate = first ? 0 : static_cast<double>(step - first_) / seconds;
  std::printf("%sstep %5lld of %lld   loss %.4f (mean of about 20: %.4f)", terminal_ ? "\r" : "",
              static_cast<long long>(step), static_cast<long long>(steps_), loss, smooth_);
  if (!first)
    std::printf("   %.2f steps/s, %.0f s left ", rate, static_cast<double>(steps_ - step) / rate);
  std::printf("%s", terminal_ && !last ? "" : "\n");
  std::fflush(stdout);
}

}  // namespace gpt
