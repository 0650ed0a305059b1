// Process to process: parts of a value, through host memory.
#pragma once
#include <cstddef>
#include <functional>
#include <span>

#include "meshard/array/slice.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/internal/across_processes.h"

namespace meshard {

/// A part of a value that a process wants.
struct WantedPart {
  int rank = 0;
  Box box;
  /// In process `rank`: where the part goes, the first elements of a row-major array of `shape`.
  /// Elements outside of the part are left as they are.
  void* destination = nullptr;
  Shape shape = {};
  /// In process `rank`: called once when the part is there, or will never be, on the thread of the
  /// messages. Until then the destination is in use.
  std::function<void(const Result<void>&)> done = {};
};

/// Brings parts of a value to processes that want them, from those that have them; waits for
/// nothing, not even for the value. Called by all of these processes, with equal lists except for
/// the destinations, at the same place in their order of transfers; it does nothing in others. A
/// part that its process has is copied there. All others are sent directly, each at once when the
/// sender has it.
/// @pre the value's sharding has no unreduced axes
/// @error an earlier failure of the communication; those of reading the value
void start_exchange(AcrossProcesses& across, const DeviceArray& source,
                    std::span<const WantedPart> wanted, SourceLocation where);

}  // namespace meshard
