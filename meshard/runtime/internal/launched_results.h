// Recorded values whose launch is not known to have succeeded yet.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "meshard/graph/node.h"
#include "meshard/graph/storage.h"
#include "meshard/pjrt/launch.h"

namespace meshard {

/// What evaluations have launched. When a launch has succeeded, its values release their operands.
/// When it has failed and the error is found, they forget their storage, so that they can be
/// computed again. Thread-safe.
class LaunchedResults {
 public:
  /// Guards changes of recorded nodes.
  std::mutex& mutex() { return mutex_; }

  /// Whether settling skips failed launches, whose errors have not been read yet, or forgets their
  /// results.
  enum class Failed { kForget, kLeave };
  /// Processes the launches that are done. @pre mutex() is held
  void settle_locked(Failed what);
  /// Adds the results of a launch and settles, leaving failed ones. @pre mutex() is held
  void add_locked(pjrt::Launch launch, std::vector<Value> results);
  /// Settles, leaving failed ones.
  void settle();
  /// Settles, forgetting failed ones. If a launch has failed, first waits for all launches in
  /// flight, because those that used its results failed too.
  void forget_failed();

 private:
  // A launch that was in flight at the last check.
  struct Unsettled {
    std::shared_ptr<const pjrt::Launch> launch;
    std::vector<Value> results;
  };

  std::mutex mutex_;
  std::vector<Unsettled> unsettled_;
  std::atomic<bool> has_unsettled_{false};
  // Storage of failed launches, which other threads may still be using.
  std::vector<StoragePtr> failed_;
};

}  // namespace meshard
