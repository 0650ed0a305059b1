#include "meshard/hlo/module.h"

#include <algorithm>
#include <unordered_map>

#include "meshard/hlo/internal/reader.h"
#include "meshard/pjrt/executable_signature.h"

// Field numbers are those of xla/service/hlo.proto and xla/xla_data.proto.
namespace meshard {
namespace {

using pjrt::field;
using pjrt::on_field;
using pjrt::read_message;
using pjrt::WireField;

Result<HloComputation> read_computation(std::string_view bytes) {
  HloComputation to;
  MESHARD_RETURN_IF_ERROR(read_message(bytes, "a computation", field(1, to.name),
                                       field(2, to.instructions, internal::read_instruction),
                                       field(5, to.id), field(6, to.root)));
  return to;
}

Result<HloAlias> read_alias(std::string_view bytes) {
  constexpr std::uint64_t kMustAlias = 2;
  HloAlias to;
  MESHARD_RETURN_IF_ERROR(read_message(
      bytes, "an alias", field(1, to.output_index), field(2, to.parameter),
      field(3, to.parameter_index),
      on_field(4, [&](const WireField& from) { to.must_alias = from.value == kMustAlias; })));
  return to;
}

// {numbers 1}: the device ids of a computation, or the ids of its instructions.
Result<std::vector<std::int64_t>> read_numbers(std::string_view bytes) {
  std::vector<std::int64_t> to;
  MESHARD_RETURN_IF_ERROR(read_message(bytes, "a list of numbers", field(1, to)));
  return to;
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

Result<StackFrames> read_stack_frames(std::string_view bytes) {
  static constexpr std::string_view kWhat = "the call stacks";
  StackFrames to;
  auto location = [](std::string_view part) -> Result<StackFrames::Location> {
    StackFrames::Location one;
    MESHARD_RETURN_IF_ERROR(
        read_message(part, kWhat, field(1, one.file), field(2, one.function), field(3, one.line)));
    return one;
  };
  auto frame = [](std::string_view part) -> Result<StackFrames::Frame> {
    StackFrames::Frame one;
    MESHARD_RETURN_IF_ERROR(
        read_message(part, kWhat, field(1, one.location), field(2, one.parent)));
    return one;
  };
  MESHARD_RETURN_IF_ERROR(read_message(bytes, kWhat, field(1, to.files), field(2, to.functions),
                                       field(3, to.locations, location),
                                       field(4, to.frames, frame)));
  return to;
}

// HloScheduleProto {sequences 1: map from computation id to InstructionSequence}.
using Schedules = std::unordered_map<std::int64_t, std::vector<std::int64_t>>;

Result<Schedules> read_schedules(std::string_view bytes) {
  Schedules to;
  auto entry = [&](const WireField& from) -> Result<void> {
    std::int64_t computation = 0;
    std::vector<std::int64_t> order;
    MESHARD_RETURN_IF_ERROR(read_message(from.bytes, "the schedule", field(1, computation),
                                         field(2, order, read_numbers)));
    to[computation] = std::move(order);
    return {};
  };
  MESHARD_RETURN_IF_ERROR(read_message(bytes, "the schedule", on_field(1, entry)));
  return to;
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
  auto aliases = [&](const WireField& from) {
    return read_message(from.bytes, "the aliases", field(1, to.aliases, read_alias));
  };
  auto device_assignment = [&](const WireField& from) {
    return read_message(from.bytes, "a device assignment",
                        field(3, to.device_assignment, read_numbers));
  };
  MESHARD_RETURN_IF_ERROR(
      read_message(bytes, "the module", field(1, to.name), field(2, to.entry_name),
                   field(3, to.computations, read_computation), field(6, to.entry_id),
                   field(7, tables.schedules, read_schedules), on_field(8, aliases),
                   on_field(15, device_assignment), field(17, tables.stacks, read_stack_frames),
                   pjrt::other_fields([&](const WireField& from) {
                     return internal::read_interface_field(from, to);
                   })));
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
  MESHARD_RETURN_IF_ERROR(read_message(
      module_with_config, "the compiled module",
      on_field(1, [&](const WireField& from) { return read_module(from.bytes, module); })));
  if (module.find(module.entry_id) == nullptr)
    return Error(ErrorCode::kDataLoss, "[hlo] the compiled module has no entry computation");
  return module;
}

}  // namespace meshard
