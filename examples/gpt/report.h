// Terminal output of the program.
#pragma once
#include <chrono>
#include <cstdint>

namespace gpt {

/// Prints the progress of training. On a terminal it overwrites one line; otherwise it prints a
/// line after each twentieth of the steps.
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
