// Notices when processes launch different programs.
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "meshard/partitioned/launch_history.h"
#include "meshard/processes/processes.h"

namespace meshard {

/// A thread that compares the launches of this process with those of others, once a second. If
/// they differ, collectives of different programs meet, which hang or give wrong results; the other
/// process then counts as lost (LossKind::kOutOfStep). Launches themselves cost no more than their
/// record in the history.
class OrderWatch {
 public:
  /// @param key of the histories in the store; ends with a slash
  OrderWatch(Processes run, std::shared_ptr<const LaunchHistory> history, std::string key);
  ~OrderWatch();
  OrderWatch(const OrderWatch&) = delete;
  OrderWatch& operator=(const OrderWatch&) = delete;

 private:
  void run_thread();
  bool look();

  Processes run_;
  std::shared_ptr<const LaunchHistory> history_;
  std::string key_;
  std::uint64_t told_ = 0;  // the launches that the others know of
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace meshard
