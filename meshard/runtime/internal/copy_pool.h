// Host copies on several threads. XLA owns the compute threads; this pool only moves bytes.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "meshard/array/slice.h"

namespace meshard {

/// The memory that copies write to.
enum class CopyTarget {
  /// Not used before: the system clears its pages during the copy, which brings them into a cache.
  kFreshPages,
  /// Used before. Copies larger than the caches are streamed: 256 MB in rows of 4 kB take 0.72 of
  /// the time (2 cores of a Xeon with AVX-512).
  kUsedPages,
};

/// A pool of threads that copy. One per process, started at the first large copy.
class CopyPool {
 public:
  static CopyPool& get();
  /// Makes a pool of at most `threads` threads; fewer if the system refuses more.
  explicit CopyPool(std::size_t threads);
  ~CopyPool();

  /// Runs all copies and returns after the last one. Small copies run on the calling thread. The
  /// destinations must not overlap. Thread-safe.
  void run(std::span<const StridedCopy> copies, CopyTarget target = CopyTarget::kFreshPages);

 private:
  struct Batch;
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Batch*> batches_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace meshard
