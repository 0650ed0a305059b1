// Saves in the background, one after the other.
#pragma once
#include <sys/types.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "meshard/base/result.h"

namespace meshard::io::internal {

/// The outcome of one save, shared by its handles and the queue.
class SaveOutcome {
 public:
  explicit SaveOutcome(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  bool done() const;
  /// Waits for the outcome. Afterward, its error counts as reported.
  Result<void> wait() const;
  /// @pre !done()
  void set(Result<void> outcome);
  /// The error if it has not been reported; afterward it counts as reported.
  std::optional<Error> take_unreported();

 private:
  std::string path_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable std::optional<Result<void>> outcome_;
  mutable bool reported_ = false;
};

/// Immovable owner of saves that are not done, and of errors that were not retrieved. A thread
/// works on the saves in order; it lives while there are some. The process waits for them when it
/// ends normally or leaves the run (Processes::finalize), and errors that were not retrieved
/// become that call's error, or are printed and the process ends with status 1. A process that ends
/// with another status only completes saves that do not depend on the main threads of others.
class SaveQueue {
 public:
  /// Called by a save of several processes when all of them have reached it.
  using AllHaveCome = std::function<void()>;
  using Work = std::function<Result<void>(const AllHaveCome&)>;

  /// The queue of this process. A forked child has a new one.
  static SaveQueue& of_process();

  /// @param key identifies the checkpoint
  /// @param waits_for_others the work may wait for other processes until it calls its argument
  std::shared_ptr<SaveOutcome> add(std::string path, std::string key, bool waits_for_others,
                                   Work work);
  /// A save that has failed already.
  std::shared_ptr<SaveOutcome> add_failed(std::string path, Error error);
  /// Waits for all saves to the checkpoint `key` that are not done.
  void wait_for(const std::string& key);
  void wait_for_all();
  /// Waits for all saves. @error the first that were not retrieved
  Result<void> finish();
  /// Like finish(), but saves that wait for other processes fail.
  Result<void> finish_without_others();

 private:
  struct Job {
    std::shared_ptr<SaveOutcome> outcome;
    std::string key;
    bool waits_for_others = false;
    Work work;
  };

  SaveQueue();
  void run();
  template <class Done>
  void wait_until(Done done);
  std::optional<Error> first_unreported();
  static void register_at_exit(bool in_run);
  static void at_exit(int status, void*);

  const pid_t process_;
  std::mutex mutex_;  // of the members below
  std::condition_variable changed_;
  std::deque<Job> jobs_;                                // the first one is being worked on
  bool running_ = false;                                // the thread
  std::deque<std::shared_ptr<SaveOutcome>> not_asked_;  // that are not reported yet, or that failed
};

}  // namespace meshard::io::internal
