// What the threads of this process wait for, so that the processes of a run notice when they wait
// for each other forever.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/base/fields.h"

namespace meshard::internal {

/// A value: a step that several processes take together. The steps of a channel are numbered from
/// 1.
struct SharedStep {
  std::string channel;
  std::uint64_t number = 0;
  /// The processes that take part; empty: any other process may end the wait.
  std::vector<int> ranks;
  MESHARD_FIELDS(channel, number, ranks)
};

/// A value: what a thread waits for.
struct Awaiting {
  /// What and where, for messages: `run "train" at train.cc:42`.
  std::string what = {};
  /// The wait ends when all of these have been reached by their processes. Empty: when work of
  /// this process ends, on a device or another thread.
  std::vector<SharedStep> steps = {};
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
};

/// A wait with at most this limit is not noted: it ends soon with an error of its own, which the
/// program may handle.
inline constexpr std::chrono::seconds kShortWait{5};

/// While alive, the thread is known to wait for `what`.
class AwaitingScope {
 public:
  explicit AwaitingScope(Awaiting what);
  ~AwaitingScope();
  AwaitingScope(const AwaitingScope&) = delete;
  AwaitingScope& operator=(const AwaitingScope&) = delete;
};

/// Notes that this process has come to a step. The threads that do so, apart from those of the
/// library, run the program (AllAwaiting::program).
void reach_step(std::string_view channel, std::uint64_t number);
/// The same for steps that their channel counts itself: only the thread is noted, until it ends.
void note_program_thread();
/// Whether this thread runs the program.
bool is_program_thread();

/// A value: all waits of this process.
struct AllAwaiting {
  /// The waits of the program's threads; empty unless all of these wait.
  std::vector<Awaiting> program;
  std::vector<Awaiting> others;
  /// The steps that were reached, by channel.
  std::vector<std::pair<std::string, std::uint64_t>> reached;
};
AllAwaiting all_awaiting();

}  // namespace meshard::internal
