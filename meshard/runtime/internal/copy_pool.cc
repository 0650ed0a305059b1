#include "meshard/runtime/internal/copy_pool.h"

#include <algorithm>
#include <atomic>
#include <system_error>

namespace meshard {
namespace {

// Below this, one thread finishes before another has woken up.
constexpr std::int64_t kParallelBytes = std::int64_t{1} << 20;
// Large enough to hide the cost of handing over work, small enough to distribute fresh pages
// evenly.
constexpr std::int64_t kPieceBytes = std::int64_t{2} << 20;
// Larger than what a core finds in its caches later.
constexpr std::int64_t kStreamedBytes = std::int64_t{32} << 20;

}  // namespace

struct CopyPool::Batch {
  std::vector<StridedCopy> pieces;
  CopyWrites writes = CopyWrites::kCached;
  std::atomic<std::size_t> next{0};
  std::size_t helpers = 0;  // guarded by the pool's mutex
  std::condition_variable left;

  void run() {
    for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < pieces.size();)
      pieces[i].run(writes);
  }
};

CopyPool& CopyPool::get() {
  // Never destroyed: destructors of static objects may still read tensors.
  static auto* pool = new CopyPool(std::max(1u, std::thread::hardware_concurrency()) - 1);
  return *pool;
}

CopyPool::CopyPool(std::size_t threads) {
  // The caller copies too, so the pool works with fewer threads if the system has no more.
  try {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
  }
}

CopyPool::~CopyPool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void CopyPool::run(std::span<const StridedCopy> copies, CopyTarget target) {
  std::int64_t bytes = 0;
  for (const StridedCopy& copy : copies) bytes += copy.bytes();
  CopyWrites writes = target == CopyTarget::kFreshPages || bytes < kStreamedBytes
                          ? CopyWrites::kCached
                          : CopyWrites::kStreamed;
  if (bytes < kParallelBytes || threads_.empty()) {
    for (const StridedCopy& copy : copies) copy.run(writes);
    return;
  }
  Batch batch;
  batch.writes = writes;
  for (const StridedCopy& copy : copies)
    for (StridedCopy& piece : copy.split(kPieceBytes)) batch.pieces.push_back(std::move(piece));
  {
    std::lock_guard lock(mutex_);
    batches_.push_back(&batch);
  }
  wake_.notify_all();
  batch.run();
  std::unique_lock lock(mutex_);
  std::erase(batches_, &batch);
  batch.left.wait(lock, [&] { return batch.helpers == 0; });
}

void CopyPool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stop_ || !batches_.empty(); });
    if (stop_) return;
    Batch* batch = batches_.front();
    ++batch->helpers;
    lock.unlock();
    batch->run();
    lock.lock();
    // All pieces are taken: remove the batch, so that no thread enters it again while its owner
    // waits.
    std::erase(batches_, batch);
    if (--batch->helpers == 0) batch->left.notify_all();
  }
}

}  // namespace meshard
