// Which programs a process has launched together with others, and the order of their collectives.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/awaiting.h"
#include "meshard/base/fingerprint.h"
#include "meshard/base/result.h"
#include "meshard/base/source_location.h"
#include "meshard/pjrt/loaded_executable.h"

namespace meshard {

/// The launches of one process that communicate, by the set of processes that take part. They must
/// be the same in all of them, in the same order, or collectives of different programs meet.
/// Recording one takes about 0.1 us; nothing is sent. Thread-safe.
class LaunchHistory {
 public:
  /// A value: a program, or another step that processes take together.
  struct Step {
    /// Equal in all processes.
    Fingerprint id;
    /// For messages: `"train"`.
    std::string name;
  };
  /// The launches of one set of processes.
  class Track;

  /// The track of these processes, ascending; lives as long as the history.
  Track* track(const std::vector<int>& ranks);
  /// Records a launch, in the order of the launches of this process.
  void add(Track& track, std::shared_ptr<const Step> step, SourceLocation where);

  /// A collective of a launch begins or ends, or another wait begins or ends for processes that
  /// have to take the newest step. `where` is its name in the program, with its source line, if
  /// known.
  void begin_collective(std::string_view kind, std::string_view where);
  void end_collective();

  /// What the process is in: the collective that runs, and the newest launch. Empty before the
  /// first launch. `since` receives when it began.
  std::string activity(std::chrono::steady_clock::time_point& since) const;

  /// Since when a collective runs, the newest if there are several; nothing if none does.
  std::optional<std::chrono::steady_clock::time_point> in_collective_since() const;

  /// The number of launches of each set of processes, as steps of channels that begin with
  /// `prefix`.
  std::vector<internal::SharedStep> steps(std::string_view prefix) const;
  /// The number of launches so far.
  std::uint64_t count() const;
  /// The sets of processes.
  std::vector<std::vector<int>> sets() const;
  /// The newest launches of each set, for other processes.
  std::string to_bytes() const;

 private:
  mutable std::mutex mutex_;  // guards the rest
  std::vector<std::shared_ptr<Track>> tracks_;
  std::uint64_t count_ = 0;
  const Track* newest_ = nullptr;
  std::chrono::steady_clock::time_point newest_at_{}, collective_at_{};
  int collectives_ = 0;     // that run, on several devices
  std::string collective_;  // keeps its memory
};

/// How the histories (LaunchHistory::to_bytes) of two processes differ, for messages; empty if the
/// launches that both histories have are equal. One may be behind the other.
///
/// `launch 17 that both take part in is "a" at x.cc:3 in process 0, and "b" at y.cc:5 in process 1`
std::optional<std::string> difference_of_histories(std::string_view a, int rank_a,
                                                   std::string_view b, int rank_b);

/// What is recorded of a launch; nothing without a step.
struct OrderedStep {
  LaunchHistory::Track* track = nullptr;
  std::shared_ptr<const LaunchHistory::Step> step = {};
};

/// Launches programs that communicate, on devices of this process. The collectives of each device
/// happen in the order of the launches: each launch takes the chains that the ones before on its
/// devices give, so the plugin starts it when those have ended. No thread waits for that. If all
/// processes launch the same programs in the same order, their collectives meet.
///
/// After a launch has failed, or was refused, the later ones fail with the same error, because the
/// processes no longer agree on which collective is next; restart() begins anew. Thread-safe.
class CollectiveOrder {
 public:
  explicit CollectiveOrder(pjrt::Client client) : client_(std::move(client)) {}

  /// Launches `program`, a loaded RewrittenModule that communicates. Arguments and outputs are
  /// those of the program without the chain, as for LoadedExecutable::execute.
  /// @error those of LoadedExecutable::execute; the same error in all later calls
  Result<pjrt::Launch> execute(const pjrt::LoadedExecutable& program,
                               std::span<const pjrt::BufferList* const> arguments,
                               std::span<pjrt::BufferList> outputs,
                               const pjrt::LaunchOptions& options = {},
                               const OrderedStep& step = {});

  /// Waits until the collectives of the launches so far have ended, and calls `function`, which may
  /// use the communicators of the devices. Launches by other threads wait for it. If all processes
  /// make the call between the same launches, their collectives meet.
  /// @error that of an earlier launch or of `function`; later calls and launches fail with the same
  Result<void> communicate(const std::function<Result<void>()>& function,
                           const OrderedStep& step = {}, SourceLocation where = {});

  /// Later calls and launches fail with this error, unless they fail already. Launches that run go
  /// on.
  void fail(const Error& error);

  /// The launches so far that have a place. It outlives the order.
  const std::shared_ptr<LaunchHistory>& history() const { return history_; }

  /// Forgets the launches so far: the next one does not wait for them.
  /// @pre none of them is running
  void restart();

 private:
  Result<pjrt::BufferList> take_chain(const pjrt::DeviceList& devices);
  Result<pjrt::Buffer> make_link(const pjrt::Device& device) const;
  void record(const OrderedStep& step, SourceLocation where);
  std::shared_ptr<LaunchHistory> history_ = std::make_shared<LaunchHistory>();
  pjrt::Client client_;
  std::mutex mutex_;  // guards the rest, and the order of launches
  // By the devices of the latest launches. Each device is in one, or in none before its first.
  std::vector<pjrt::BufferList> chains_;
  std::optional<Error> failure_;
  std::vector<const pjrt::BufferList*> arguments_;
  std::vector<pjrt::BufferList> outputs_;
};

}  // namespace meshard
