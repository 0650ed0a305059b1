// Notices when processes launch different programs.
#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "meshard/partitioned/launch_history.h"
#include "meshard/processes/processes.h"

namespace meshard {

/// A thread that compares the launches of this process with those of others, once a second. If
/// they differ, collectives of different programs meet, which hang or give wrong results; the other
/// process then counts as lost (LossKind::kOutOfStep). A process that has failed while this one
/// waits in a collective (kGaveUp) counts, too, because nothing else ends that wait. Launches
/// themselves cost no
/// more than their record in the history.
class OrderWatch {
 public:
  using ReportedFailure = std::function<Result<std::optional<std::string>>(int rank)>;
  /// @param key of the histories in the store; ends with a slash
  /// @param reported_failure what a process has reported of its failure; nothing as long as it
  /// works
  OrderWatch(Processes run, std::shared_ptr<const LaunchHistory> history, std::string key,
             ReportedFailure reported_failure);
  ~OrderWatch();
  OrderWatch(const OrderWatch&) = delete;
  OrderWatch& operator=(const OrderWatch&) = delete;

 private:
  void run_thread();
  bool look();
  bool is_abandoned();

  Processes run_;
  std::shared_ptr<const LaunchHistory> history_;
  std::string key_;
  ReportedFailure reported_failure_;
  std::uint64_t told_ = 0;  // the launches that the others have received
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace meshard
