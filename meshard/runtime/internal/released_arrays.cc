// Tested in tests/plugin/runtime_fake_test.cc.
#include "meshard/runtime/internal/released_arrays.h"

#include <array>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "meshard/runtime/internal/launch_helper.h"

namespace meshard::internal {
namespace {

constexpr std::size_t kMostBytes = 1 << 20;
constexpr std::size_t kMostArrays = 1 << 11;
// Fewer buffers are not worth waking the thread, which takes as long as destroying about ten.
constexpr std::size_t kLeastBuffers = 64;
// More batches wait only if the threads that launch are faster than this one: then they help.
constexpr std::size_t kMostBatches = 4;

// The thread that destroys buffers.
class ReleaseThread {
 public:
  // Takes the batch and leaves an empty one. False: the caller keeps it, because the thread is
  // behind.
  bool take(pjrt::BufferBatch& batch) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || waiting_ == kMostBatches) return false;
    std::swap(batches_[(first_ + waiting_++) % kMostBatches], batch);
    bool sleeps = sleeps_;
    lock.unlock();
    if (sleeps) wake_.notify_one();
    return true;
  }

  // Waits until all batches that were taken before are destroyed.
  void drain() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return waiting_ == 0 && !works_; });
  }

  [[noreturn]] void run() {
    pjrt::BufferBatch batch;
    std::unique_lock lock(mutex_);
    while (true) {
      while (waiting_ == 0) {
        sleeps_ = true;
        wake_.wait(lock);
        sleeps_ = false;
      }
      std::swap(batch, batches_[first_]);
      first_ = (first_ + 1) % kMostBatches;
      --waiting_;
      works_ = true;
      lock.unlock();
      batch.destroy();
      lock.lock();
      works_ = false;
      if (waiting_ == 0) idle_.notify_all();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::array<pjrt::BufferBatch, kMostBatches> batches_;  // a ring; the empty ones keep memory
  std::size_t first_ = 0, waiting_ = 0;
  bool sleeps_ = false, works_ = false;
};

// Hands the batch to the thread. False if it is small, the thread is behind, or there is none, as
// in a process with one core.
bool hand_over(pjrt::BufferBatch& batch) noexcept {
  if (batch.size() < kLeastBuffers) return false;
  ReleaseThread* thread = HelperThread<ReleaseThread>::get();
  return thread && thread->take(batch);
}

}  // namespace

void ReleasedArrays::add(pjrt::BufferList& buffers) {
  if (&buffers.devices() != batch_.devices() ||
      batch_.bytes() + buffers.bytes_each() * buffers.size() > kMostBytes ||
      batch_.size() >= kMostArrays * buffers.size()) {
    if (!hand_over(batch_)) batch_.destroy();
  }
  batch_.add(buffers);
}

bool ReleasedArrays::is_due() const {
  // Of donated ones, the plugin has little to destroy.
  return batch_.bytes() == 0 || batch_.size() >= kLeastBuffers;
}

void ReleasedArrays::give_up() noexcept {
  if (hand_over(batch_)) return;
  if (is_due() || HelperThread<ReleaseThread>::get() == nullptr) batch_.destroy();
}

pjrt::BufferBatch ReleasedArrays::take() {
  if (!is_due()) return {};
  std::swap(batch_, spare_);
  return std::move(spare_);
}

void ReleasedArrays::destroy() noexcept {
  batch_.destroy();
  if (auto* thread = HelperThread<ReleaseThread>::get_started()) thread->drain();
}

}  // namespace meshard::internal
