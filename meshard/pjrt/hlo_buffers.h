// Which buffers a compiler assigned to the values of a compiled module.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"

namespace meshard::pjrt {

/// One array that some instruction makes.
struct HloLogicalBuffer {
  std::int64_t id = 0;
  std::int64_t size = 0;
  /// The instruction that makes it, and which part of its result.
  std::int64_t instruction = 0;
  std::vector<std::int64_t> shape_index;
};

/// One block of memory, which several arrays may use one after another.
struct HloBufferAllocation {
  struct Assigned {
    std::int64_t buffer = 0;  // a logical buffer's id
    std::int64_t offset = 0, size = 0;
  };
  std::int64_t index = 0;
  std::int64_t size = 0;
  /// Of each thread its own: scalars of computations that are applied to elements.
  bool thread_local_memory = false;
  bool constant = false;
  bool tuple = false;
  /// It holds something that the program gives.
  bool live_out = false;
  /// Which argument of the program it is.
  std::optional<std::int64_t> parameter;
  std::vector<std::int64_t> parameter_index;
  /// The memory: 0 is the main one, else as HloLayout::memory_space.
  std::int64_t color = 0;
  std::vector<Assigned> assigned;
};

/// When the arrays of one allocation are made and freed, in order.
struct HloHeapTrace {
  enum class Kind { kAllocate = 0, kFree = 1, kShare = 2 };
  struct Event {
    Kind kind = Kind::kAllocate;
    std::int64_t buffer = 0;
    /// Of kShare: the array whose memory is also this one's.
    std::int64_t shared_with = 0;
  };
  std::int64_t allocation = 0;
  std::vector<Event> events;
};

/// What a compiler's HloProto says beside its module (BufferAssignmentProto of
/// xla/service/hlo.proto).
struct HloBufferAssignment {
  std::vector<HloLogicalBuffer> buffers;
  std::vector<HloBufferAllocation> allocations;
  std::vector<HloHeapTrace> traces;

  /// Reads the bytes of an HloProto; none if it holds no assignment.
  /// @error data loss if they are damaged
  static Result<std::optional<HloBufferAssignment>> from_bytes(std::string_view hlo_proto);
};

}  // namespace meshard::pjrt
