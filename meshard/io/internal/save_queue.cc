#include "meshard/io/internal/save_queue.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>
#include <utility>

#include "meshard/base/awaiting.h"
#include "meshard/base/cat.h"
#include "meshard/base/stall_report.h"
#include "meshard/base/threads.h"
#include "meshard/processes/processes.h"

namespace meshard::io::internal {
namespace {

std::atomic<SaveQueue*> current_queue{nullptr};

}  // namespace

bool SaveOutcome::done() const {
  std::lock_guard lock(mutex_);
  return outcome_.has_value();
}

Result<void> SaveOutcome::wait() const {
  meshard::internal::AwaitingScope awaiting({.what = cat("the checkpoint ", path_)});
  std::unique_lock lock(mutex_);
  meshard::internal::wait_or_report(
      changed_, lock, [&] { return outcome_.has_value(); },
      [&] { return cat("the checkpoint ", path_, " to be saved"); });
  reported_ = true;
  return *outcome_;
}

void SaveOutcome::set(Result<void> outcome) {
  {
    std::lock_guard lock(mutex_);
    outcome_ = std::move(outcome);
  }
  changed_.notify_all();
}

std::optional<Error> SaveOutcome::take_unreported() {
  std::lock_guard lock(mutex_);
  if (!outcome_ || outcome_->ok() || std::exchange(reported_, true)) return {};
  return outcome_->error();
}

SaveQueue& SaveQueue::of_process() {
  static std::mutex making;
  SaveQueue* queue = current_queue.load(std::memory_order_acquire);
  if (queue && queue->process_ == ::getpid()) return *queue;
  std::lock_guard lock(making);
  queue = current_queue.load(std::memory_order_acquire);
  if (!queue || queue->process_ != ::getpid()) {
    queue = new SaveQueue;  // never destroyed: threads may wait at exit
    current_queue.store(queue, std::memory_order_release);
  }
  return *queue;
}

SaveQueue::SaveQueue() : process_(::getpid()) {
  [[maybe_unused]] static const bool registered = [] {
    meshard::internal::before_finalize([] {
      SaveQueue* queue = current_queue.load();
      return queue && queue->process_ == ::getpid() ? queue->finish() : Result<void>();
    });
    return true;
  }();
}

void SaveQueue::register_at_exit(bool in_run) {
  auto add_handler = [] {
#ifdef __GLIBC__
    ::on_exit(&SaveQueue::at_exit, nullptr);
#else
    std::atexit([] { SaveQueue::at_exit(0, nullptr); });
#endif
    return true;
  };
  // Handlers run in reverse order. The first save of several processes comes after
  // initialize_processes(), so its handler runs before the process leaves the run.
  [[maybe_unused]] static const bool registered = add_handler();
  if (!in_run) return;
  [[maybe_unused]] static const bool registered_in_run = add_handler();
}

std::shared_ptr<SaveOutcome> SaveQueue::add(std::string path, std::string key,
                                            bool waits_for_others, Work work) {
  register_at_exit(waits_for_others);
  auto outcome = std::make_shared<SaveOutcome>(std::move(path));
  {
    std::lock_guard lock(mutex_);
    not_asked_.push_back(outcome);
    jobs_.push_back({outcome, std::move(key), waits_for_others, std::move(work)});
    if (!std::exchange(running_, true)) std::thread([this] { run(); }).detach();
  }
  changed_.notify_all();
  return outcome;
}

std::shared_ptr<SaveOutcome> SaveQueue::add_failed(std::string path, Error error) {
  register_at_exit(false);
  auto outcome = std::make_shared<SaveOutcome>(std::move(path));
  outcome->set(std::move(error));
  std::lock_guard lock(mutex_);
  not_asked_.push_back(outcome);
  return outcome;
}

void SaveQueue::run() {
  meshard::internal::is_quiet_thread = true;
  std::unique_lock lock(mutex_);
  while (!jobs_.empty()) {
    // Others only append to the list or remove jobs behind this one.
    Job& job = jobs_.front();
    Work work = std::move(job.work);
    lock.unlock();
    auto all_have_come = [&] {
      std::lock_guard again(mutex_);
      jobs_.front().waits_for_others = false;
    };
    Result<void> result;
    try {
      result = work(all_have_come);
    } catch (const Error& error) {
      result = error;
    } catch (const std::exception& error) {
      result = Error(ErrorCode::kInternal, cat("[io] ", error.what()));
    }
    work = {};  // drops the values
    lock.lock();
    std::shared_ptr<SaveOutcome> outcome = std::move(jobs_.front().outcome);
    jobs_.pop_front();
    // Successes need not be kept.
    if (result.ok()) std::erase(not_asked_, outcome);
    outcome->set(std::move(result));
    if (jobs_.empty()) running_ = false;
    changed_.notify_all();
  }
}

template <class Done>
void SaveQueue::wait_until(Done done) {
  meshard::internal::AwaitingScope awaiting({.what = "checkpoints"});
  std::unique_lock lock(mutex_);
  meshard::internal::wait_or_report(changed_, lock, done, [&] {
    return cat("checkpoints to be saved: ", jobs_.front().outcome->path());
  });
}

void SaveQueue::wait_for(const std::string& key) {
  wait_until(
      [&] { return std::ranges::none_of(jobs_, [&](const Job& job) { return job.key == key; }); });
}

void SaveQueue::wait_for_all() {
  wait_until([&] { return jobs_.empty(); });
}

std::optional<Error> SaveQueue::first_unreported() {
  std::lock_guard lock(mutex_);
  std::optional<Error> first;
  for (const std::shared_ptr<SaveOutcome>& each : not_asked_)
    if (std::optional<Error> error = each->take_unreported())
      first = first ? first->with_note(cat("also, ", error->what()))
                    : error->with_note(cat("while saving ", each->path(), " in the background"));
  std::erase_if(not_asked_, [](const auto& each) { return each->done(); });
  return first;
}

Result<void> SaveQueue::finish() {
  wait_for_all();
  if (std::optional<Error> error = first_unreported()) return *std::move(error);
  return {};
}

Result<void> SaveQueue::finish_without_others() {
  std::deque<Job> given_up;
  {
    std::lock_guard lock(mutex_);
    std::deque<Job> kept;
    for (std::size_t i = 0; i < jobs_.size(); ++i)  // the thread is at work on the first one
      (i > 0 && jobs_[i].waits_for_others ? given_up : kept).push_back(std::move(jobs_[i]));
    jobs_ = std::move(kept);
  }
  auto too_early = [](const Job& job) {
    return Error(ErrorCode::kCancelled,
                 cat("[io] ", job.outcome->path(),
                     " was not saved: the process ended before all others had come"));
  };
  for (Job& job : given_up) job.outcome->set(too_early(job));
  wait_until([&] { return jobs_.empty() || jobs_.front().waits_for_others; });
  if (std::optional<Error> error = first_unreported()) return *std::move(error);
  std::lock_guard lock(mutex_);
  if (!jobs_.empty()) return too_early(jobs_.front());
  return {};
}

void SaveQueue::at_exit(int status, void*) {
  SaveQueue* queue = current_queue.load();
  if (!queue || queue->process_ != ::getpid()) return;
  Result<void> outcome = status == 0 ? queue->finish() : queue->finish_without_others();
  if (outcome.ok()) return;
  std::string text = cat(outcome.error().what(), "\n");
  std::fflush(stdout);
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  // The handlers that remain run with this status.
  if (status == 0) std::exit(1);
}

}  // namespace meshard::io::internal
