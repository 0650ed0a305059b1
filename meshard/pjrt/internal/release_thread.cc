// Tested in tests/plugin/buffer_list_test.cc.
#include "meshard/pjrt/internal/release_thread.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "meshard/base/quiet_thread.h"
#include "meshard/base/usable_cores.h"

namespace meshard::pjrt::internal {
namespace {

// More batches wait only if the threads that launch are faster than this one: then they help.
constexpr std::size_t kMostBatches = 4;

class Worker {
 public:
  // The process's only one, or null if it cannot start. Never destroyed: destructors of static
  // objects may still release buffers.
  static Worker* get() {
    static Worker* worker = start();
    return worker;
  }
  static bool exists() { return exists_.load(std::memory_order_acquire); }

  bool take(ReleasedBatch& batch) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || waiting_ == kMostBatches) return false;
    std::size_t size = batch.buffers.size();
    ReleasedBatch& slot = batches_[(first_ + waiting_++) % kMostBatches];
    std::swap(slot, batch);
    batch.buffers = std::move(spare_);  // instead of growing again
    bool sleeps = sleeps_;
    lock.unlock();
    if (sleeps) wake_.notify_one();
    if (batch.buffers.capacity() < size) batch.buffers.reserve(size);
    return true;
  }

  void drain() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return waiting_ == 0 && !works_; });
  }

 private:
  static Worker* start() {
    if (meshard::internal::usable_cores() < 2) return nullptr;
    try {
      auto* worker = new Worker;
      meshard::internal::start_quiet_thread([worker] { worker->run(); }).detach();
      // The thread does not exist in children.
      pthread_atfork(nullptr, nullptr, [] { exists_ = false; });
      exists_.store(true, std::memory_order_release);
      return worker;
    } catch (const std::exception&) {  // no more threads or memory
      return nullptr;
    }
  }

  [[noreturn]] void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      while (waiting_ == 0) {
        sleeps_ = true;
        wake_.wait(lock);
        sleeps_ = false;
      }
      ReleasedBatch batch = std::move(batches_[first_]);
      first_ = (first_ + 1) % kMostBatches;
      --waiting_;
      works_ = true;
      lock.unlock();
      batch.destroy();
      lock.lock();
      works_ = false;
      spare_ = std::move(batch.buffers);
      if (waiting_ == 0) idle_.notify_all();
    }
  }

  static inline std::atomic<bool> exists_ = false;

  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::array<ReleasedBatch, kMostBatches> batches_;  // a ring
  std::size_t first_ = 0, waiting_ = 0;
  bool sleeps_ = false, works_ = false;
  std::vector<PJRT_Buffer*> spare_;
};

}  // namespace

bool ReleaseThread::runs() noexcept { return Worker::get() && Worker::exists(); }

bool ReleaseThread::take(ReleasedBatch& batch) noexcept {
  if (batch.buffers.size() < kLeastBuffers) return false;
  return runs() && Worker::get()->take(batch);
}

void ReleaseThread::drain() noexcept {
  if (Worker::exists()) Worker::get()->drain();
}

}  // namespace meshard::pjrt::internal
