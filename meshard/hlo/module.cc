#include "meshard/hlo/module.h"

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/hlo/internal/reader.h"
#include "meshard/pjrt/executable.h"

// Field numbers are those of xla/service/hlo.proto and xla/xla_data.proto.

// Field numbers are those of xla/service/hlo.proto: HloModuleProtoWithConfig {hlo_module 1},
// HloModuleProto {host_program_shape 4, spmd_output_sharding 12, spmd_parameters_shardings 14}.

// Field numbers are those of xla/service/hlo.proto and xla/xla_data.proto.

namespace meshard {
namespace {

using pjrt::field;
using pjrt::on_field;
using pjrt::read_message;
using pjrt::WireField;

Result<HloMetadata> read_metadata(std::string_view bytes) {
  HloMetadata to;
  MESHARD_RETURN_IF_ERROR(read_message(bytes, "metadata", field(2, to.op_name),
                                       field(3, to.source_file), field(4, to.source_line),
                                       field(15, to.stack_frame)));
  return to;
}

Result<std::pair<std::int64_t, std::int64_t>> read_source_target(std::string_view bytes) {
  std::pair<std::int64_t, std::int64_t> to{0, 0};
  MESHARD_RETURN_IF_ERROR(
      read_message(bytes, "a source-target pair", field(1, to.first), field(2, to.second)));
  return to;
}

// The value of a literal, from any of its lists of integers or bools, if it has exactly one.
Result<std::optional<std::int64_t>> read_literal(std::string_view bytes) {
  std::vector<std::int64_t> values;
  HloShape shape;
  auto is_scalar = [&] { return !shape.is_tuple && shape.dimensions.empty(); };
  auto numbers = [&](const WireField& from) {
    bool is_whole = from.number == 2 || (from.number >= 4 && from.number <= 7);
    if (!is_whole || !is_scalar() || !values.empty()) return true;  // long lists are not kept
    return (from.is_bytes() && from.bytes.size() > 10) || append_numbers(from, values);
  };
  MESHARD_RETURN_IF_ERROR(read_message(bytes, "a literal", field(1, shape, internal::read_shape),
                                       pjrt::other_fields(numbers)));
  if (!is_scalar() || values.size() != 1) return std::optional<std::int64_t>();
  return std::optional(values[0]);
}

Result<HloDotDimensions> read_dot(std::string_view bytes) {
  HloDotDimensions to;
  MESHARD_RETURN_IF_ERROR(read_message(bytes, "a dot's dimensions", field(1, to.lhs_contracting),
                                       field(2, to.rhs_contracting), field(3, to.lhs_batch),
                                       field(4, to.rhs_batch)));
  return to;
}

Result<HloConvolutionDimensions> read_convolution(std::string_view bytes) {
  HloConvolutionDimensions to;
  MESHARD_RETURN_IF_ERROR(read_message(
      bytes, "a convolution's dimensions", field(3, to.kernel_input_feature),
      field(4, to.kernel_output_feature), field(6, to.kernel_spatial), field(7, to.input_batch),
      field(8, to.input_feature), field(9, to.output_batch), field(10, to.output_feature),
      field(11, to.input_spatial), field(12, to.output_spatial)));
  return to;
}

Result<HloWindowDimension> read_window_dimension(std::string_view bytes) {
  // Zeros are not serialized.
  HloWindowDimension to{.size = 0, .stride = 0, .window_dilation = 0, .base_dilation = 0};
  MESHARD_RETURN_IF_ERROR(read_message(bytes, "a window", field(1, to.size), field(2, to.stride),
                                       field(3, to.padding_low), field(4, to.padding_high),
                                       field(5, to.window_dilation), field(6, to.base_dilation)));
  return to;
}

Result<std::vector<HloWindowDimension>> read_window(std::string_view bytes) {
  std::vector<HloWindowDimension> to;
  MESHARD_RETURN_IF_ERROR(read_message(bytes, "a window", field(1, to, read_window_dimension)));
  return to;
}

Result<std::pair<std::string, std::string>> read_frontend_attribute(std::string_view bytes) {
  std::pair<std::string, std::string> to;
  MESHARD_RETURN_IF_ERROR(
      read_message(bytes, "frontend attributes", field(1, to.first), field(2, to.second)));
  return to;
}

using pjrt::field;
using pjrt::on_field;
using pjrt::read_message;
using pjrt::WireField;

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

Result<HloInstruction> internal::read_instruction(std::string_view bytes) {
  HloInstruction to;
  auto attributes = [&](const WireField& from) {
    return read_message(from.bytes, "frontend attributes",
                        field(1, to.frontend_attributes, read_frontend_attribute));
  };
  MESHARD_RETURN_IF_ERROR(read_message(
      bytes, "an instruction", field(1, to.name), field(2, to.opcode),
      field(3, to.shape, read_shape), field(7, to.metadata, read_metadata),
      field(8, to.literal, read_literal), field(9, to.parameter_number), field(11, to.fusion_kind),
      field(13, to.tuple_index), field(14, to.dimensions), field(15, to.window, read_window),
      field(16, to.convolution, read_convolution), field(26, to.channel_id),
      field(28, to.custom_call_target), field(30, to.dot, read_dot), field(35, to.id),
      field(36, to.operands), field(38, to.called_computations),
      field(40, to.sharding, HloSharding::from_bytes), field(43, to.backend_config),
      field(49, to.groups.listed, read_replica_group), field(50, to.feature_groups),
      field(52, to.source_target_pairs, read_source_target), field(58, to.batch_groups),
      field(63, to.comparison_direction), on_field(68, attributes),
      field(71, to.use_global_device_ids),
      // Newer forms of the groups replace the old list, which may also be present.
      field(87, to.groups, read_device_list), field(92, to.groups, read_iota_list),
      field(93, to.groups, read_mesh_axes_list)));
  return to;
}

std::string_view HloInstruction::frontend_attribute(std::string_view key) const {
  for (const auto& [attribute, value] : frontend_attributes)
    if (attribute == key) return value;
  return "";
}

std::string HloInstruction::to_string() const {
  std::string text =
      cat(opcode, " ", metadata.op_name.empty() ? name : metadata.op_name, " ", shape);
  if (!metadata.source_file.empty())
    append(text, cat(" (", metadata.source_file, ":", metadata.source_line, ")"));
  return text;
}

Result<void> internal::read_interface_field(const WireField& from, HloInterface& to) {
  switch (from.number) {
    case 4:
      return read_message(from.bytes, "the program's shape", field(1, to.parameters, read_shape),
                          field(2, to.result, read_shape));
    case 12: return field(12, to.output_sharding, HloSharding::from_bytes).take(from);
    case 14: return field(14, to.parameter_shardings, HloSharding::from_bytes).take(from);
    default: return {};
  }
}

Result<HloInterface> HloInterface::from_bytes(std::string_view module_with_config) {
  HloInterface to;
  auto module = [&](const WireField& from) {
    return read_message(from.bytes, "the module", pjrt::other_fields([&](const WireField& each) {
                          return internal::read_interface_field(each, to);
                        }));
  };
  MESHARD_RETURN_IF_ERROR(
      read_message(module_with_config, "the compiled module", on_field(1, module)));
  return to;
}

const HloInstruction* HloComputation::find(std::int64_t instruction) const {
  auto found = std::ranges::find(instructions, instruction, &HloInstruction::id);
  return found == instructions.end() ? nullptr : &*found;
}

const HloComputation* HloModule::find(std::int64_t computation) const {
  auto found = std::ranges::find(computations, computation, &HloComputation::id);
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

InstructionIndex::InstructionIndex(const HloComputation& computation) : computation_(&computation) {
  position_.reserve(computation.instructions.size());
  for (std::size_t i = 0; i < computation.instructions.size(); ++i)
    position_.emplace(computation.instructions[i].id, i);
}

const HloInstruction* InstructionIndex::find(std::int64_t id) const {
  auto found = position_.find(id);
  return found == position_.end() ? nullptr : &computation_->instructions[found->second];
}

const HloInstruction* InstructionIndex::operand(const HloInstruction& instruction,
                                                std::size_t number) const {
  return number < instruction.operands.size() ? find(instruction.operands[number]) : nullptr;
}

std::vector<const HloInstruction*> InstructionIndex::operands(
    const HloInstruction& instruction) const {
  std::vector<const HloInstruction*> found;
  for (std::int64_t id : instruction.operands)
    if (const HloInstruction* operand = find(id)) found.push_back(operand);
  return found;
}

std::vector<const HloInstruction*> InstructionIndex::users(
    const HloInstruction& instruction) const {
  const auto& all = computation_->instructions;
  if (users_.empty()) {
    users_.resize(all.size());
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::int64_t id : all[i].operands)
        if (auto found = position_.find(id); found != position_.end())
          users_[found->second].push_back(i);
  }
  std::vector<const HloInstruction*> found;
  if (auto own = position_.find(instruction.id); own != position_.end())
    for (std::size_t i : users_[own->second]) found.push_back(&all[i]);
  return found;
}

std::vector<const HloInstruction*> InstructionIndex::in_run_order() const {
  const auto& all = computation_->instructions;
  std::vector<const HloInstruction*> order;
  std::vector<bool> seen(all.size(), false);
  for (std::int64_t id : computation_->schedule) {
    auto found = position_.find(id);
    if (found == position_.end() || seen[found->second]) continue;
    seen[found->second] = true;
    order.push_back(&all[found->second]);
  }
  if (order.size() == all.size()) return order;
  order.clear();
  for (const HloInstruction& each : all) order.push_back(&each);
  return order;
}

ModuleIndex::ModuleIndex(const HloModule& module) : module_(&module) {
  computations_.reserve(module.computations.size());
  for (const HloComputation& each : module.computations) {
    auto& index = computations_[each.id];
    if (!index) index = std::make_unique<const InstructionIndex>(each);
  }
}

const InstructionIndex* ModuleIndex::find(std::int64_t computation) const {
  auto found = computations_.find(computation);
  return found == computations_.end() ? nullptr : found->second.get();
}

const InstructionIndex* ModuleIndex::called(const HloInstruction& instruction,
                                            std::size_t number) const {
  return number < instruction.called_computations.size()
             ? find(instruction.called_computations[number])
             : nullptr;
}

}  // namespace meshard
