// The buffers that a compiler assigned to the values of a module.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"

namespace meshard {

/// One array that an instruction produces.
struct HloLogicalBuffer {
  std::int64_t id = 0;
  std::int64_t size = 0;
  /// The instruction that produces it, and the part of that instruction's result.
  std::int64_t instruction = 0;
  std::vector<std::int64_t> shape_index;
};

/// One block of memory, which several arrays may use at different times.
struct HloBufferAllocation {
  struct Assigned {
    std::int64_t buffer = 0;  // a logical buffer's id
    std::int64_t offset = 0, size = 0;
  };
  std::int64_t index = 0;
  std::int64_t size = 0;
  /// Each thread has its own copy. Used for scalars of computations that are applied to elements.
  bool thread_local_memory = false;
  bool constant = false;
  bool tuple = false;
  /// Holds a result of the program.
  bool live_out = false;
  /// Index of the program argument, if this is one.
  std::optional<std::int64_t> parameter;
  std::vector<std::int64_t> parameter_index;
  /// The memory space: 0 is main memory; otherwise as in HloLayout::memory_space.
  std::int64_t color = 0;
  std::vector<Assigned> assigned;
};

/// The sequence in which the arrays of one allocation are allocated and freed.
struct HloHeapTrace {
  enum class Kind { kAllocate = 0, kFree = 1, kShare = 2 };
  struct Event {
    Kind kind = Kind::kAllocate;
    std::int64_t buffer = 0;
    /// For kShare: the array whose memory this one shares.
    std::int64_t shared_with = 0;
  };
  std::int64_t allocation = 0;
  std::vector<Event> events;
};

/// The buffer assignment of an HloProto (BufferAssignmentProto of xla/service/hlo.proto).
struct HloBufferAssignment {
  std::vector<HloLogicalBuffer> buffers;
  std::vector<HloBufferAllocation> allocations;
  std::vector<HloHeapTrace> traces;

  /// Reads the bytes of an HloProto; none if it has no assignment.
  /// @error data loss if they are damaged
  static Result<std::optional<HloBufferAssignment>> from_bytes(std::string_view hlo_proto);
};

}  // namespace meshard
