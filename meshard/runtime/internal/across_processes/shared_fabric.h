// What the fabrics of several processes have in common: the steps that these take together.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "meshard/base/awaiting.h"
#include "meshard/base/result.h"
#include "meshard/processes/processes.h"
#include "meshard/runtime/internal/fabric.h"

namespace meshard {

/// A fabric over devices of several processes. Counts the steps that these take together: programs
/// that they load, values that they place. All processes must call next_step() in the same order.
class SharedFabric : public Fabric {
 public:
  SharedFabric(const Platforms& platforms, Processes run, pjrt::Client client)
      : Fabric(platforms, std::move(client)), run_(run) {}
  bool reads_alone(const DeviceArray& array) const override;
  void check_equal_data(const HostArray& array, const Mesh& mesh, SourceLocation where) override;

  const Processes& run() const { return run_; }
  int rank() const { return run_.rank(); }

  /// The number of clients of several processes before this one: of restarts of the runtime.
  int generation() const { return generation_; }
  /// The key in the store of the next step that the processes `ranks` take together: each set of
  /// processes counts its own.
  std::string next_step(const std::vector<int>& ranks);
  /// The key under which these processes announce their result to processes that do not take part.
  /// `what` is equal in all processes.
  std::string announcement(const std::vector<int>& ranks, std::string_view what) const;

 private:
  Processes run_;
  std::mutex mutex_;  // of the steps
  std::map<std::vector<int>, std::uint64_t> steps_;
  const int generation_ = next_generation_++;  // after a restart, steps have other keys
  static inline std::atomic<int> next_generation_{0};
};

/// The step with this key (SharedFabric::next_step), which the processes `ranks` take.
internal::SharedStep shared_step(std::string_view key, const std::vector<int>& ranks);

/// How long a process waits for others that must do the same: MESHARD_PROCESS_WAIT_SECONDS, else
/// 600 s.
/// @error invalid argument if that is not a whole number from 1
Result<std::chrono::milliseconds> wait_for_processes();

/// `process 2`, `processes 0, 1 and 3`.
std::string names_of_processes(const std::vector<int>& ranks);

}  // namespace meshard
