#include "meshard/hlo/module.h"

#include <algorithm>
#include <unordered_map>

#include "meshard/hlo/internal/reader.h"
#include "meshard/pjrt/executable_signature.h"

// Field numbers are those of xla/service/hlo.proto and xla/xla_data.proto.
namespace meshard {
namespace {

using internal::damaged;
using pjrt::WireReader;

Result<HloComputation> read_computation(std::string_view bytes) {
  HloComputation computation;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    switch (field->number) {
      case 1: computation.name = field->bytes; break;
      case 2: {
        MESHARD_ASSIGN_OR_RETURN(auto instruction, internal::read_instruction(field->bytes));
        computation.instructions.push_back(std::move(instruction));
        break;
      }
      case 5: computation.id = field->as_int(); break;
      case 6: computation.root = field->as_int(); break;
      default: break;
    }
  }
  if (!reader.ok()) return damaged("a computation");
  return computation;
}

Result<void> read_aliases(std::string_view bytes, std::vector<HloAlias>& to) {
  constexpr std::uint64_t kMustAlias = 2;
  WireReader reader(bytes);
  while (auto entry = reader.next()) {
    if (entry->number != 1) continue;
    HloAlias alias;
    WireReader fields(entry->bytes);
    while (auto field = fields.next()) {
      bool good = true;
      if (field->number == 1) good = append_numbers(*field, alias.output_index);
      if (field->number == 2) alias.parameter = field->as_int();
      if (field->number == 3) good = append_numbers(*field, alias.parameter_index);
      if (field->number == 4) alias.must_alias = field->value == kMustAlias;
      if (!good) return damaged("an alias");
    }
    if (!fields.ok()) return damaged("an alias");
    to.push_back(std::move(alias));
  }
  return reader.ok() ? Result<void>() : damaged("the aliases");
}

Result<void> read_device_assignment(std::string_view bytes, HloModule& to) {
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    if (field->number != 3) continue;
    std::vector<std::int64_t> ids;
    WireReader computation(field->bytes);
    while (auto list = computation.next())
      if (list->number == 1 && !append_numbers(*list, ids)) return damaged("a device assignment");
    if (!computation.ok()) return damaged("a device assignment");
    to.device_assignment.push_back(std::move(ids));
  }
  return reader.ok() ? Result<void>() : damaged("a device assignment");
}

// The call stacks: StackFrameIndexProto {file_names 1, function_names 2, file_locations 3
// {file_name_id 1, function_name_id 2, line 3}, stack_frames 4 {file_location_id 1, parent_frame_id
// 2}}. Ids begin at 1.
struct StackFrames {
  struct Location {
    std::int64_t file = 0, function = 0, line = 0;
  };
  struct Frame {
    std::int64_t location = 0, parent = 0;
  };
  std::vector<std::string_view> files, functions;
  std::vector<Location> locations;
  std::vector<Frame> frames;

  template <class T>
  static const T* at(const std::vector<T>& all, std::int64_t id) {
    return id >= 1 && id <= std::ssize(all) ? &all[static_cast<std::size_t>(id - 1)] : nullptr;
  }

  std::vector<HloFrame> described() const {
    std::vector<HloFrame> all;
    for (const Frame& frame : frames) {
      HloFrame& one = all.emplace_back();
      one.parent = frame.parent;
      const Location* location = at(locations, frame.location);
      if (!location) continue;
      one.line = location->line;
      if (const std::string_view* file = at(files, location->file)) one.file = *file;
      if (const std::string_view* name = at(functions, location->function)) one.function = *name;
    }
    return all;
  }
};

Result<void> read_stack_frames(std::string_view bytes, StackFrames& to) {
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    if (field->number == 1) to.files.push_back(field->bytes);
    if (field->number == 2) to.functions.push_back(field->bytes);
    if (field->number != 3 && field->number != 4) continue;
    StackFrames::Location location;
    WireReader numbers(field->bytes);
    while (auto number = numbers.next()) {
      if (number->number == 1) location.file = number->as_int();
      if (number->number == 2) location.function = number->as_int();
      if (number->number == 3) location.line = number->as_int();
    }
    if (!numbers.ok()) return damaged("the call stacks");
    if (field->number == 3) to.locations.push_back(location);
    if (field->number == 4) to.frames.push_back({location.file, location.function});
  }
  return reader.ok() ? Result<void>() : damaged("the call stacks");
}

// InstructionSequence {instruction_ids 1} by computation id.
using Schedules = std::unordered_map<std::int64_t, std::vector<std::int64_t>>;

// HloScheduleProto {sequences 1: map}.
Result<void> read_schedules(std::string_view bytes, Schedules& to) {
  WireReader reader(bytes);
  while (auto entry = reader.next()) {
    if (entry->number != 1) continue;
    std::int64_t computation = 0;
    std::vector<std::int64_t> order;
    WireReader fields(entry->bytes);
    while (auto field = fields.next()) {
      if (field->number == 1) computation = field->as_int();
      if (field->number != 2) continue;
      WireReader sequence(field->bytes);
      while (auto ids = sequence.next())
        if (ids->number == 1 && !append_numbers(*ids, order)) return damaged("the schedule");
      if (!sequence.ok()) return damaged("the schedule");
    }
    if (!fields.ok()) return damaged("the schedule");
    to[computation] = std::move(order);
  }
  return reader.ok() ? Result<void>() : damaged("the schedule");
}

// The module's tables that refer to its computations.
struct Tables {
  Schedules schedules;
  StackFrames stacks;

  void apply(HloModule& to) {
    to.frames = stacks.described();
    for (HloComputation& computation : to.computations) {
      if (auto found = schedules.find(computation.id); found != schedules.end())
        computation.schedule = std::move(found->second);
      for (HloInstruction& each : computation.instructions) name(each.metadata, to.frames);
    }
  }

  // An instruction without a line of its own gets the innermost frame's.
  static void name(HloMetadata& metadata, const std::vector<HloFrame>& frames) {
    if (!metadata.source_file.empty()) return;
    const HloFrame* frame = StackFrames::at(frames, metadata.stack_frame);
    if (!frame || frame->file.empty()) return;
    metadata.source_file = frame->file;
    metadata.source_line = frame->line;
  }
};

Result<void> read_module(std::string_view bytes, HloModule& to) {
  Tables tables;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    switch (field->number) {
      case 1: to.name = field->bytes; break;
      case 2: to.entry_name = field->bytes; break;
      case 3: {
        MESHARD_ASSIGN_OR_RETURN(auto computation, read_computation(field->bytes));
        to.computations.push_back(std::move(computation));
        break;
      }
      case 6: to.entry_id = field->as_int(); break;
      case 7: MESHARD_RETURN_IF_ERROR(read_schedules(field->bytes, tables.schedules)); break;
      case 8: MESHARD_RETURN_IF_ERROR(read_aliases(field->bytes, to.aliases)); break;
      case 15: MESHARD_RETURN_IF_ERROR(read_device_assignment(field->bytes, to)); break;
      case 17: MESHARD_RETURN_IF_ERROR(read_stack_frames(field->bytes, tables.stacks)); break;
      default: MESHARD_RETURN_IF_ERROR(internal::read_interface_field(*field, to)); break;
    }
  }
  if (!reader.ok()) return damaged("the module");
  tables.apply(to);
  return {};
}

}  // namespace

const HloInstruction* HloComputation::find(std::int64_t instruction) const {
  auto found = std::find_if(instructions.begin(), instructions.end(),
                            [&](const HloInstruction& one) { return one.id == instruction; });
  return found == instructions.end() ? nullptr : &*found;
}

const HloComputation* HloModule::find(std::int64_t computation) const {
  auto found = std::find_if(computations.begin(), computations.end(),
                            [&](const HloComputation& one) { return one.id == computation; });
  return found == computations.end() ? nullptr : &*found;
}

const HloComputation& HloModule::entry() const { return *find(entry_id); }

Result<HloModule> HloModule::from_bytes(std::string_view module_with_config) {
  HloModule module;
  WireReader reader(module_with_config);
  while (auto field = reader.next())
    if (field->number == 1) MESHARD_RETURN_IF_ERROR(read_module(field->bytes, module));
  if (!reader.ok()) return damaged("the compiled module");
  if (module.find(module.entry_id) == nullptr)
    return Error(ErrorCode::kDataLoss, "[hlo] the compiled module has no entry computation");
  return module;
}

}  // namespace meshard
