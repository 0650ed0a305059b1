#include "meshard/processes/background_messages.h"

#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <set>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/threads.h"
#include "meshard/processes/internal/member_text.h"

namespace meshard {
namespace {

using Clock = std::chrono::steady_clock;

// The thread asks for messages without a pause at first, and then after a fraction of the time that
// it has waited, so that a message is late by at most that fraction.
constexpr std::chrono::microseconds kShortestPause{20}, kLongestPause{500};
constexpr int kFractionOfWait = 8;
// How often others are asked whether they have failed.
constexpr std::chrono::seconds kLookInterval{1};

}  // namespace

// A message under way.
struct BackgroundMessages::Active {
  int process = 0;
  std::unique_ptr<StartedMessage> message;
  std::shared_ptr<const void> keep;  // what is sent
  std::string what;
  Done done;  // null: sent
};

BackgroundMessages::BackgroundMessages(ProcessCommunicator& communicator,
                                       BackgroundMessagesOptions options)
    : communicator_(communicator), options_(std::move(options)) {}

BackgroundMessages::~BackgroundMessages() {
  {
    std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

int BackgroundMessages::next_tag_to(int process) {
  std::lock_guard lock(mutex_);
  ++unsent_;
  return options_.first_tag +
         static_cast<int>(sent_to_[process]++ % static_cast<std::uint64_t>(options_.tags));
}

void BackgroundMessages::send(const OutgoingMessage& message, std::shared_ptr<const void> keep) {
  run([this, message, keep = std::move(keep)]() mutable {
    Result<std::unique_ptr<StartedMessage>> started = communicator_.start_send(message);
    {
      std::lock_guard lock(mutex_);
      --unsent_;
    }
    changed_.notify_all();
    if (!started.ok()) return fail(started.error());
    auto made = std::make_unique<Active>();
    made->process = message.process;
    made->message = *std::move(started);
    made->keep = std::move(keep);
    active_.push_back(std::move(made));
  });
}

void BackgroundMessages::receive(int process, void* data, std::size_t bytes, std::string what,
                                 Done done) {
  int tag = 0;
  {
    std::lock_guard lock(mutex_);
    tag = options_.first_tag +
          static_cast<int>(received_from_[process]++ % static_cast<std::uint64_t>(options_.tags));
  }
  run([this, message = IncomingMessage{process, tag, data, bytes}, what = std::move(what),
       done = std::move(done)]() mutable {
    if (std::optional<Error> failed = failure()) return done(*failed);
    Result<std::unique_ptr<StartedMessage>> started = communicator_.start_receive(message);
    if (!started.ok()) {
      done(started.error());
      return fail(started.error());
    }
    auto made = std::make_unique<Active>();
    made->process = message.process;
    made->message = *std::move(started);
    made->what = std::move(what);
    made->done = std::move(done);
    active_.push_back(std::move(made));
  });
}

void BackgroundMessages::run(std::function<void()> work) {
  {
    std::lock_guard lock(mutex_);
    if (is_finished_) return;
    tasks_.push_back(std::move(work));
    if (!thread_.joinable()) thread_ = internal::start_quiet_thread([this] { this->work(); });
  }
  changed_.notify_all();
}

void BackgroundMessages::fail(const Error& error) {
  {
    std::lock_guard lock(mutex_);
    if (failure_ || is_finished_) return;
    failure_ = error;
  }
  run([this, error] {
    end_receives(error);
    if (options_.on_failure) options_.on_failure(error);
  });
}

std::optional<Error> BackgroundMessages::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

void BackgroundMessages::finish() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return unsent_ == 0 || failure_ || is_finished_; });
    if (std::exchange(is_finished_, true) || !thread_.joinable()) return;
  }
  changed_.notify_all();
  thread_.join();
}

void BackgroundMessages::end_receives(const Error& error) {
  std::vector<std::unique_ptr<Active>> ended;
  for (std::unique_ptr<Active>& each : active_)
    if (each->done) ended.push_back(std::move(each));
  std::erase(active_, nullptr);
  for (const std::unique_ptr<Active>& each : ended) {
    each->message->cancel();
    each->done(error);
  }
}

// Whether a message has ended.
bool BackgroundMessages::poll() {
  std::vector<std::unique_ptr<Active>> ended;
  std::optional<Error> failed;
  for (std::unique_ptr<Active>& each : active_) {
    Result<bool> outcome = each->message->has_ended();
    if (outcome.ok() && !*outcome) continue;
    if (each->done) each->done(outcome.ok() ? Result<void>() : Result<void>(outcome.error()));
    if (!outcome.ok() && !failed) failed = outcome.error();
    ended.push_back(std::move(each));
  }
  std::erase(active_, nullptr);
  if (failed) fail(*failed);
  return !ended.empty();
}

void BackgroundMessages::say_wait(const std::string* what) {
  if (std::exchange(says_it_waits_, what != nullptr) == (what != nullptr) || !options_.on_wait)
    return;
  options_.on_wait(what);
}

void BackgroundMessages::look_for_failures(Clock::time_point now) {
  std::set<int> processes;
  const Active* oldest = nullptr;
  for (const std::unique_ptr<Active>& each : active_) {
    if (!each->done) continue;
    processes.insert(each->process);
    if (!oldest) oldest = each.get();
  }
  if (!oldest) return;
  if (now - progress_ > options_.limit)
    return fail(Error(ErrorCode::kDeadlineExceeded,
                      cat("[transfer] ", oldest->what, " has not come from process ",
                          oldest->process, " within ", internal::seconds_text(options_.limit))));
  say_wait(&oldest->what);
  if (options_.failure_of)
    for (int process : processes)
      if (std::optional<Error> found = options_.failure_of(process)) return fail(*found);
}

// Until stops_ is set, or MPI is about to end.
void BackgroundMessages::work() {
  // Pauses are shorter than the slack that timers have otherwise.
  (void)::prctl(PR_SET_TIMERSLACK, 1000UL);
  const auto has_work = [this] { return !tasks_.empty() || stops_ || is_finished_; };
  for (std::vector<std::function<void()>> tasks;; tasks.clear()) {
    {
      std::unique_lock lock(mutex_);
      const Clock::duration pause = (Clock::now() - progress_) / kFractionOfWait;
      if (active_.empty()) {
        changed_.wait(lock, has_work);
        progress_ = Clock::now();
      } else if (pause > kShortestPause) {
        changed_.wait_for(lock, std::min<Clock::duration>(pause, kLongestPause), has_work);
      }
      if (stops_ || is_finished_) break;
      tasks.swap(tasks_);
    }
    for (const std::function<void()>& task : tasks) task();
    const bool progressed = poll() || !tasks.empty();
    const Clock::time_point now = Clock::now();
    if (progressed) {
      progress_ = now;
      say_wait(nullptr);
    } else if (now - std::max(looked_, progress_) > kLookInterval) {
      looked_ = now;
      look_for_failures(now);
    } else if (now - progress_ <= kShortestPause * kFractionOfWait) {
      ::sched_yield();
    }
  }
  say_wait(nullptr);
  for (const std::unique_ptr<Active>& each : active_)
    if (each->done) each->message->cancel();
  if (is_finished_) return;  // MPI itself waits for what is being sent
  std::erase_if(active_, [](const auto& each) { return each->done != nullptr; });
  while (!active_.empty())
    if (!poll()) ::sched_yield();
}

}  // namespace meshard
