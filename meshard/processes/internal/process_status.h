// What a process waits for, as its signs of life say, and which processes wait for each other.
#pragma once
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/awaiting.h"

namespace meshard::internal {

/// A value: what a sign of life says about waits.
struct ProcessStatus {
  /// A wait that has lasted for `age`.
  struct Wait {
    std::string what;
    std::vector<SharedStep> steps;  // empty: for work of the same process
    std::chrono::milliseconds age{0};
    MESHARD_FIELDS(what, steps, age)
  };
  /// It has returned from main, or left the run.
  bool has_ended = false;
  /// Of the threads that run the program, which goes on when one of them ends; empty if it runs.
  std::vector<Wait> program = {};
  /// Of its devices and other threads.
  std::vector<Wait> others = {};
  /// The steps that it has come to.
  std::vector<std::pair<std::string, std::uint64_t>> reached = {};

  MESHARD_FIELDS(has_ended, program, others, reached)
  /// Of this process.
  static ProcessStatus of(const AllAwaiting& awaiting, std::chrono::steady_clock::time_point now);
  std::string to_bytes() const;
  /// Nothing if the bytes are not a status.
  static std::optional<ProcessStatus> from_bytes(std::string_view bytes);
};

/// A value: a wait that will never end.
struct StuckWait {
  /// Who waits, and for whom.
  int rank = 0, awaited = 0;
  ProcessStatus::Wait wait;
};

/// The waits that cannot end, because a process has ended that they need, or because processes wait
/// for each other; one of each process at most. A process without a status counts as running, and a
/// wait that is younger than `age` as one that will end.
std::vector<StuckWait> stuck_waits(std::span<const std::optional<ProcessStatus>> processes,
                                   std::chrono::milliseconds age);

}  // namespace meshard::internal
