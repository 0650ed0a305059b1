#include "meshard/hlo/buffers.h"

#include "meshard/hlo/internal/reader.h"

// Field numbers are those of xla/service/hlo.proto.
namespace meshard {
namespace {

using internal::damaged;
using pjrt::WireReader;

constexpr std::string_view kWhat = "the buffer assignment";

Result<HloLogicalBuffer> read_buffer(std::string_view bytes) {
  HloLogicalBuffer buffer;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    if (field->number == 1) buffer.id = field->as_int();
    if (field->number == 2) buffer.size = field->as_int();
    if (field->number != 3) continue;
    WireReader place(field->bytes);  // defined_at {shape_index 3, instruction_id 4}
    while (auto part = place.next()) {
      if (part->number == 3 && !append_numbers(*part, buffer.shape_index)) return damaged(kWhat);
      if (part->number == 4) buffer.instruction = part->as_int();
    }
    if (!place.ok()) return damaged(kWhat);
  }
  if (!reader.ok()) return damaged(kWhat);
  return buffer;
}

Result<HloBufferAllocation::Assigned> read_assigned(std::string_view bytes) {
  HloBufferAllocation::Assigned assigned;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    if (field->number == 1) assigned.buffer = field->as_int();
    if (field->number == 2) assigned.offset = field->as_int();
    if (field->number == 3) assigned.size = field->as_int();
  }
  if (!reader.ok()) return damaged(kWhat);
  return assigned;
}

Result<HloBufferAllocation> read_allocation(std::string_view bytes) {
  HloBufferAllocation to;
  bool is_parameter = false;
  std::int64_t parameter = 0;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    bool good = true;
    switch (field->number) {
      case 1: to.index = field->as_int(); break;
      case 2: to.size = field->as_int(); break;
      case 3: to.thread_local_memory = field->as_bool(); break;
      case 5: is_parameter = field->as_bool(); break;
      case 6: parameter = field->as_int(); break;
      case 7: to.live_out = field->as_bool(); break;
      case 8: to.color = field->as_int(); break;
      case 9: {
        MESHARD_ASSIGN_OR_RETURN(auto assigned, read_assigned(field->bytes));
        to.assigned.push_back(assigned);
        break;
      }
      case 10: good = append_numbers(*field, to.parameter_index); break;
      case 11: to.tuple = field->as_bool(); break;
      case 12: to.constant = field->as_bool(); break;
      default: break;
    }
    if (!good) return damaged(kWhat);
  }
  if (!reader.ok()) return damaged(kWhat);
  if (is_parameter) to.parameter = parameter;
  return to;
}

Result<HloHeapTrace::Event> read_event(std::string_view bytes) {
  HloHeapTrace::Event event;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    if (field->number == 1) {
      if (field->value > 2) return damaged(kWhat);
      event.kind = static_cast<HloHeapTrace::Kind>(field->value);
    }
    if (field->number == 2) event.buffer = field->as_int();
    if (field->number == 5) event.shared_with = field->as_int();
  }
  if (!reader.ok()) return damaged(kWhat);
  return event;
}

Result<HloHeapTrace> read_trace(std::string_view bytes) {
  HloHeapTrace trace;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    if (field->number == 1) {
      MESHARD_ASSIGN_OR_RETURN(HloHeapTrace::Event event, read_event(field->bytes));
      trace.events.push_back(event);
    }
    if (field->number == 3) trace.allocation = field->as_int();
  }
  if (!reader.ok()) return damaged(kWhat);
  return trace;
}

Result<HloBufferAssignment> read_assignment(std::string_view bytes) {
  HloBufferAssignment to;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    if (field->number == 1) {
      MESHARD_ASSIGN_OR_RETURN(HloLogicalBuffer buffer, read_buffer(field->bytes));
      to.buffers.push_back(std::move(buffer));
    }
    if (field->number == 3) {
      MESHARD_ASSIGN_OR_RETURN(HloBufferAllocation allocation, read_allocation(field->bytes));
      to.allocations.push_back(std::move(allocation));
    }
    if (field->number == 4) {
      MESHARD_ASSIGN_OR_RETURN(HloHeapTrace trace, read_trace(field->bytes));
      to.traces.push_back(std::move(trace));
    }
  }
  if (!reader.ok()) return damaged(kWhat);
  return to;
}

}  // namespace

Result<std::optional<HloBufferAssignment>> HloBufferAssignment::from_bytes(
    std::string_view hlo_proto) {
  std::optional<HloBufferAssignment> assignment;
  WireReader reader(hlo_proto);
  while (auto field = reader.next())
    if (field->number == 3) {
      MESHARD_ASSIGN_OR_RETURN(assignment, read_assignment(field->bytes));
    }
  if (!reader.ok()) return damaged(kWhat);
  return assignment;
}

}  // namespace meshard
