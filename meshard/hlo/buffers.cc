#include "meshard/hlo/buffers.h"

#include "meshard/pjrt/wire.h"

// Field numbers are those of xla/service/hlo.proto.
namespace meshard {
namespace {

using pjrt::field;
using pjrt::on_field;
using pjrt::read_message;
using pjrt::WireField;

constexpr std::string_view kAssignment = "the buffer assignment";

Result<HloLogicalBuffer> read_buffer(std::string_view bytes) {
  HloLogicalBuffer to;
  auto defined_at = [&](const WireField& from) {
    return read_message(from.bytes, kAssignment, field(3, to.shape_index),
                        field(4, to.instruction));
  };
  MESHARD_RETURN_IF_ERROR(read_message(bytes, kAssignment, field(1, to.id), field(2, to.size),
                                       on_field(3, defined_at)));
  return to;
}

Result<HloBufferAllocation::Assigned> read_assigned(std::string_view bytes) {
  HloBufferAllocation::Assigned to;
  MESHARD_RETURN_IF_ERROR(read_message(bytes, kAssignment, field(1, to.buffer), field(2, to.offset),
                                       field(3, to.size)));
  return to;
}

Result<HloBufferAllocation> read_allocation(std::string_view bytes) {
  HloBufferAllocation to;
  bool is_parameter = false;
  std::int64_t parameter = 0;
  MESHARD_RETURN_IF_ERROR(
      read_message(bytes, kAssignment, field(1, to.index), field(2, to.size),
                   field(3, to.thread_local_memory), field(5, is_parameter), field(6, parameter),
                   field(7, to.live_out), field(8, to.color), field(9, to.assigned, read_assigned),
                   field(10, to.parameter_index), field(11, to.tuple), field(12, to.constant)));
  if (is_parameter) to.parameter = parameter;
  return to;
}

Result<HloHeapTrace::Event> read_event(std::string_view bytes) {
  HloHeapTrace::Event to;
  auto kind = [&](const WireField& from) {
    to.kind = static_cast<HloHeapTrace::Kind>(from.value);
    return from.value <= 2;
  };
  MESHARD_RETURN_IF_ERROR(read_message(bytes, kAssignment, on_field(1, kind), field(2, to.buffer),
                                       field(5, to.shared_with)));
  return to;
}

Result<HloHeapTrace> read_trace(std::string_view bytes) {
  HloHeapTrace to;
  MESHARD_RETURN_IF_ERROR(
      read_message(bytes, kAssignment, field(1, to.events, read_event), field(3, to.allocation)));
  return to;
}

Result<HloBufferAssignment> read_assignment(std::string_view bytes) {
  HloBufferAssignment to;
  MESHARD_RETURN_IF_ERROR(read_message(bytes, kAssignment, field(1, to.buffers, read_buffer),
                                       field(3, to.allocations, read_allocation),
                                       field(4, to.traces, read_trace)));
  return to;
}

}  // namespace

Result<std::optional<HloBufferAssignment>> HloBufferAssignment::from_bytes(
    std::string_view hlo_proto) {
  std::optional<HloBufferAssignment> assignment;
  MESHARD_RETURN_IF_ERROR(
      read_message(hlo_proto, kAssignment, field(3, assignment, read_assignment)));
  return assignment;
}

}  // namespace meshard
