#include "meshard/runtime/internal/launch_helper.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace meshard::internal {
namespace {

// Waking a thread that sleeps takes 20 to 40 us, a third of a launch with 20 parameters on 8
// devices. The next launch of a loop comes earlier than this.
constexpr std::chrono::microseconds kSpin{50};

// The pieces of one call of share(), which outlives it on the caller's stack.
class LaunchJob {
 public:
  LaunchJob(std::size_t count, FunctionRef<void(std::size_t)> work) : count_(count), work_(work) {}

  // Takes pieces until none is left. Returns how many.
  std::size_t take_part() noexcept {
    std::size_t taken = 0;
    for (std::size_t k; (k = next_.fetch_add(1, std::memory_order_relaxed)) < count_; ++taken) {
      try {
        work_(k);
      } catch (...) {
        next_.store(count_, std::memory_order_relaxed);
        std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
      }
    }
    return taken;
  }
  // @pre no thread takes part
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const std::size_t count_;
  const FunctionRef<void(std::size_t)> work_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::exception_ptr error_;  // guarded by mutex_
};

class LaunchHelperThread {
 public:
  // The caller and the helper take the job's pieces. If the helper has another job, the caller
  // takes all.
  void share(LaunchJob& job) {
    bool posted = false, asleep = false;
    if (std::unique_lock lock(mutex_, std::try_to_lock);
        lock.owns_lock() && !job_ && !working_.load(std::memory_order_relaxed)) {
      job_ = &job;
      is_posted_.store(true, std::memory_order_relaxed);
      posted = true;
      asleep = is_asleep_;
    }
    if (asleep) wake_.notify_one();
    job.take_part();
    if (!posted) return;
    auto is_over = [&] { return working_.load(std::memory_order_acquire) != &job; };
    std::unique_lock lock(mutex_);
    withdraw(job);
    if (is_over()) return;
    lock.unlock();
    if (spin_until(is_over, kSpin)) return;
    lock.lock();
    over_.wait(lock, is_over);
  }

  [[noreturn]] void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      while (!job_) {
        lock.unlock();
        bool seen = spin_until([&] { return is_posted_.load(std::memory_order_relaxed); }, kSpin);
        lock.lock();
        if (seen || job_) continue;
        is_asleep_ = true;
        wake_.wait(lock);
        is_asleep_ = false;
      }
      LaunchJob& job = *job_;
      working_.store(&job, std::memory_order_relaxed);
      lock.unlock();
      calls_.fetch_add(job.take_part(), std::memory_order_relaxed);
      lock.lock();
      withdraw(job);
      working_.store(nullptr, std::memory_order_release);  // the job may be gone from here on
      over_.notify_all();
    }
  }

  std::size_t calls() const { return calls_.load(std::memory_order_relaxed); }

 private:
  // Keeps the helper from beginning with the job. @pre mutex_ is held
  void withdraw(const LaunchJob& job) {
    if (job_ != &job) return;
    job_ = nullptr;
    is_posted_.store(false, std::memory_order_relaxed);
  }

  std::mutex mutex_;
  std::condition_variable wake_, over_;
  LaunchJob* job_ = nullptr;  // not begun by the helper yet; guarded by mutex_
  std::atomic<const LaunchJob*> working_{nullptr};  // the helper takes pieces of it
  std::atomic<bool> is_posted_{false};  // job_ is not null; for looking without the lock
  bool is_asleep_ = false;              // guarded by mutex_
  std::atomic<std::size_t> calls_{0};
};

}  // namespace

void LaunchHelper::share(std::size_t count, FunctionRef<void(std::size_t)> work) {
  LaunchJob job(count, work);
  if (LaunchHelperThread* helper = count > 1 ? HelperThread<LaunchHelperThread>::get() : nullptr)
    helper->share(job);
  else
    job.take_part();
  job.rethrow();
}

std::size_t LaunchHelper::calls() noexcept {
  LaunchHelperThread* helper = HelperThread<LaunchHelperThread>::get();
  return helper ? helper->calls() : 0;
}

}  // namespace meshard::internal
