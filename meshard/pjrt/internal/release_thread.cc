// Tested in tests/plugin/buffer_list_test.cc.
#include "meshard/pjrt/internal/release_thread.h"

#include <array>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "meshard/pjrt/internal/helper_thread.h"

namespace meshard::pjrt::internal {
namespace {

// More batches wait only if the threads that launch are faster than this one: then they help.
constexpr std::size_t kMostBatches = 4;

class Worker {
 public:
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

 private:
  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::array<ReleasedBatch, kMostBatches> batches_;  // a ring
  std::size_t first_ = 0, waiting_ = 0;
  bool sleeps_ = false, works_ = false;
  std::vector<PJRT_Buffer*> spare_;
};

}  // namespace

bool ReleaseThread::runs() noexcept { return HelperThread<Worker>::get() != nullptr; }

bool ReleaseThread::take(ReleasedBatch& batch) noexcept {
  if (batch.buffers.size() < kLeastBuffers) return false;
  Worker* worker = HelperThread<Worker>::get();
  return worker && worker->take(batch);
}

void ReleaseThread::drain() noexcept {
  if (Worker* worker = HelperThread<Worker>::get_started()) worker->drain();
}

}  // namespace meshard::pjrt::internal
