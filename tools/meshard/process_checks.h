// Checks of a run's store, barriers and collectives, with their times.
#pragma once
#include <string>

#include "meshard/base/result.h"
#include "meshard/processes/clock_offset.h"
#include "meshard/processes/processes.h"

namespace meshard::tool {

/// A value: what one process has measured. Times are medians in seconds.
struct CheckTimes {
  /// A put and a get of a key of this process, while all processes do it.
  double store = 0;
  double barrier = 0;
  /// An all-reduce of one number, and one of kLargeBytes; 0 without collectives.
  double small_reduce = 0, large_reduce = 0;
  /// From the start of a program over all devices until its result is read; 0: not run.
  double program = 0;
  ClockOffset clock = {};
  /// What does not work; else empty.
  std::string problem;

  /// For the store.
  std::string to_string() const;
  /// @error invalid argument
  static Result<CheckTimes> parse(const std::string& text);
};

inline constexpr std::size_t kLargeBytes = std::size_t{16} << 20;

/// Called by all processes.
/// @param with_program run a program over the devices of all processes
/// @post the first check that fails is in `problem`; the ones after it are left out
CheckTimes check_processes(const Processes& run, bool with_program);

}  // namespace meshard::tool
