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

/// Brings the whole value to all processes of its mesh, which must all call it. Waits for it.
/// @pre `destination` has the bytes of the value
/// @error failed precondition if this process is none of them; deadline exceeded if a process does
/// not take part; otherwise as start_exchange()
void gather_across(AcrossProcesses& across, const DeviceArray& source, void* destination,
                   SourceLocation where);

/// Brings the whole value to the process `to` (-1: to all processes of the run). Called by all
/// processes of the run.
/// @pre `destination` has the bytes of the value, in each process that receives it
/// @error as gather_across()
void gather_to_process(AcrossProcesses& across, const DeviceArray& source, int to,
                       void* destination, SourceLocation where);

}  // namespace meshard
