// Tested in tests/processes/check_across.py.
#include "meshard/runtime/internal/across_processes/order_watch.h"

#include <algorithm>
#include <set>

#include "meshard/base/cat.h"
#include "meshard/base/threads.h"

namespace meshard {
namespace {

constexpr std::chrono::seconds kInterval{1};
// A process that has failed may have taken part in the collective before.
constexpr std::chrono::seconds kLongCollective{4};

}  // namespace

OrderWatch::OrderWatch(Processes run, std::shared_ptr<const LaunchHistory> history, std::string key,
                       ReportedFailure reported_failure)
    : run_(run),
      history_(std::move(history)),
      key_(std::move(key)),
      reported_failure_(std::move(reported_failure)) {
  thread_ = internal::start_quiet_thread([this] { run_thread(); });
}

OrderWatch::~OrderWatch() {
  {
    std::lock_guard lock(mutex_);
    stops_ = true;
  }
  stopped_.notify_all();
  thread_.join();
}

void OrderWatch::run_thread() {
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, kInterval, [this] { return stops_; })) {
    lock.unlock();
    bool goes_on = look();
    lock.lock();
    if (!goes_on) return;
  }
}

// Whether a process has failed that this one waits for in a collective.
bool OrderWatch::is_abandoned() {
  auto since = history_->in_collective_since();
  if (!since || std::chrono::steady_clock::now() - *since < kLongCollective) return false;
  std::set<int> others;
  for (const std::vector<int>& ranks : history_->sets())
    if (std::ranges::find(ranks, run_.rank()) != ranks.end())
      others.insert(ranks.begin(), ranks.end());
  others.erase(run_.rank());
  for (int rank : others)
    if (Result<std::optional<std::string>> reported = reported_failure_(rank);
        reported.ok() && *reported) {
      run_.report_given_up(rank, **reported);
      return true;
    }
  return false;
}

// False if there is nothing more to watch.
bool OrderWatch::look() {
  if (history_->count() == 0) return true;
  if (is_abandoned()) return false;
  std::string own = history_->to_bytes();
  if (std::uint64_t count = history_->count(); count != told_) {
    // A failure: process 0 is gone, or this process has left the run.
    if (!run_.store().put(cat(key_, run_.rank()), own).ok()) return false;
    told_ = count;
  }
  // Of each set, one other process: if two members differ, two neighbors do.
  std::set<int> others;
  for (const std::vector<int>& ranks : history_->sets()) {
    auto here = std::ranges::find(ranks, run_.rank());
    if (here == ranks.end() || ranks.size() < 2) continue;
    others.insert(here == ranks.begin() ? ranks.back() : *(here - 1));
  }
  for (int rank : others) {
    Result<std::optional<std::string>> theirs = run_.store().try_get(cat(key_, rank));
    if (!theirs.ok()) return false;
    if (!*theirs) continue;
    if (auto difference = difference_of_histories(own, run_.rank(), **theirs, rank)) {
      run_.report_out_of_step(rank, *difference);
      return false;
    }
  }
  return true;
}

}  // namespace meshard
