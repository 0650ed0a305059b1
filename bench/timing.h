// Clocks, and alternating measurements of two things.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace meshard::bench {

/// Microseconds of a clock that all processes share.
inline double now() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// The minimum of several measurements.
struct Least {
  double value = 1e300;
  void take(double measured) { value = std::min(value, measured); }
};

struct OursAndFloor {
  double ours, floor;
};

/// Measures ours, floor, ours, floor, ... and returns the minimum of each, so that other load on
/// the machine affects both alike. The first turn is only a warm-up.
template <class Ours, class Floor>
OursAndFloor in_turns(int turns, Ours&& ours, Floor&& floor) {
  Least a, b;
  ours();
  floor();
  for (int i = 0; i < turns; ++i) {
    a.take(ours());
    b.take(floor());
  }
  return {a.value, b.value};
}

/// What `work` returns in a process of its own, which starts with the heap of this one. None if it
/// failed, with a message on stderr. @pre the runtime has not started
std::optional<std::string> output_of_child(const std::function<std::string()>& work);
/// The same for numbers; empty if it failed.
std::vector<double> numbers_of_child(const std::function<std::vector<double>()>& measure);

/// Memory of this process, in bytes, from /proc/self/status: `VmRSS`, `VmHWM`.
std::int64_t memory(const char* key);
/// Resets VmHWM to VmRSS.
void reset_peak_memory();

}  // namespace meshard::bench
