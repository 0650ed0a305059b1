// The order of collectives of successive launches in one process.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/partitioned/launch_history.h"
#include "meshard/pjrt/loaded_executable.h"

namespace meshard {

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
