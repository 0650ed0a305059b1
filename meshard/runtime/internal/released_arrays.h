// Delays the destruction of small arrays for a moment.
#pragma once
#include "meshard/base/threads.h"
#include "meshard/pjrt/buffer_list.h"

namespace meshard::internal {

/// Buffers of small arrays that this thread has dropped and that are not destroyed yet. Destroying
/// a small buffer takes the CPU plugin about 4,000 instructions, 30 times what it takes to launch
/// for it: with 20 parameters on 8 devices, 5 of 6 instructions of a thread that launches without a
/// pause. Many at once take half of that (pjrt::BufferBatch), and one thread of the process
/// destroys them beside the launches.
class ReleasedArrays {
 public:
  /// The arrays of this thread. They are destroyed during its next launch, while the devices work,
  /// or,
  /// if there are few, during a later one; before it waits or reads statistics; and when it ends.
  static ReleasedArrays& of_thread() { return thread_instance<ReleasedArrays>(); }

  /// Takes the buffers of an array that ends if they are worth the delay; otherwise they stay in
  /// the list, which destroys them.
  static void take_over(pjrt::BufferList& buffers) {
    if (buffers.size() > 1 && buffers.bytes_each() <= kMostBytesEach &&
        pjrt::BufferBatch::takes(buffers))
      of_thread().add(buffers);
  }
  /// Lets the release thread destroy them if they are many. If they are few, they stay until there
  /// are more. If they are dead already or the thread does not exist, the caller destroys them.
  void give_up() noexcept;
  /// Gives them to the caller, if they are as many as give_up() gives away.
  pjrt::BufferBatch take();
  /// Memory of a batch that was taken, to be used again. @pre the batch is empty
  void give_back(pjrt::BufferBatch& batch) noexcept { spare_ = std::move(batch); }
  /// Destroys them. @post those that threads gave up before are destroyed, too
  void destroy() noexcept;

 private:
  void add(pjrt::BufferList& buffers);
  // Whether they are not worth keeping for a later launch.
  bool is_due() const;

  static constexpr std::size_t kMostBytesEach = 1 << 12;

  pjrt::BufferBatch batch_, spare_;
};

}  // namespace meshard::internal
