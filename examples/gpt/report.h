// What the program tells on the terminal.
#pragma once
#include <chrono>
#include <cstdint>

namespace gpt {

/// The line that grows while the program trains: on a terminal it is written over again and again,
/// elsewhere every twentieth of the way gets a line of its own.
class Progress {
 public:
  explicit Progress(std::int64_t steps);
  void operator()(std::int64_t step, double loss);

 private:
  using Clock = std::chrono::steady_clock;
  std::int64_t steps_;
  bool terminal_;
  std::int64_t first_ = 0, parts_ = -1;
  double smooth_ = 0;
  Clock::time_point began_ = Clock::now(), shown_{};
};

}  // namespace gpt
