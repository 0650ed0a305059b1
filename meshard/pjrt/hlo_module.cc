#include "meshard/pjrt/hlo_module.h"

#include <algorithm>

#include "meshard/pjrt/executable_signature.h"
#include "meshard/pjrt/internal/hlo_reader.h"

// Field numbers are those of xla/service/hlo.proto and xla/xla_data.proto.
namespace meshard::pjrt {
namespace {

using internal::damaged;

constexpr int kMostNesting = 64;  // of tuples; damaged bytes could nest without end

Result<HloShape> read_shape(std::string_view bytes, int depth = 0) {
  constexpr std::uint64_t kTuple = 13;
  if (depth > kMostNesting) return damaged("a shape");
  HloShape shape;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    switch (field->number) {
      case 2:
        shape.is_tuple = field->value == kTuple;
        shape.element = element_type_of_primitive(static_cast<int>(field->value));
        break;
      case 3:
        if (!append_numbers(*field, shape.dimensions)) return damaged("a shape");
        break;
      case 4: {
        MESHARD_ASSIGN_OR_RETURN(HloShape part, read_shape(field->bytes, depth + 1));
        shape.tuple.push_back(std::move(part));
        break;
      }
      default: break;
    }
  }
  if (!reader.ok()) return damaged("a shape");
  return shape;
}

Result<HloMetadata> read_metadata(std::string_view bytes) {
  HloMetadata metadata;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    if (field->number == 2) metadata.op_name = field->bytes;
    if (field->number == 3) metadata.source_file = field->bytes;
    if (field->number == 4) metadata.source_line = field->as_int();
  }
  if (!reader.ok()) return damaged("metadata");
  return metadata;
}

Result<std::pair<std::int64_t, std::int64_t>> read_source_target(std::string_view bytes) {
  std::pair<std::int64_t, std::int64_t> pair{0, 0};
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    if (field->number == 1) pair.first = field->as_int();
    if (field->number == 2) pair.second = field->as_int();
  }
  if (!reader.ok()) return damaged("a source-target pair");
  return pair;
}

// The fields of a collective; true if the field was one of them.
Result<bool> read_collective_field(const WireField& field, HloInstruction& to) {
  switch (field.number) {
    case 26: to.channel_id = field.as_int(); return true;
    case 49:
      MESHARD_RETURN_IF_ERROR(internal::read_replica_group(field.bytes, to.groups));
      return true;
    case 52: {
      MESHARD_ASSIGN_OR_RETURN(auto pair, read_source_target(field.bytes));
      to.source_target_pairs.push_back(pair);
      return true;
    }
    case 71: to.use_global_device_ids = field.as_bool(); return true;
    // Newer forms of the groups replace the old list, which may stand beside them.
    case 87:
      to.groups = {};
      MESHARD_RETURN_IF_ERROR(internal::read_device_list(field.bytes, to.groups));
      return true;
    case 92:
      to.groups = {};
      MESHARD_RETURN_IF_ERROR(internal::read_iota_list(field.bytes, to.groups));
      return true;
    case 93:
      to.groups = {};
      MESHARD_RETURN_IF_ERROR(internal::read_mesh_axes_list(field.bytes, to.groups));
      return true;
    default: return false;
  }
}

Result<HloInstruction> read_instruction(std::string_view bytes) {
  HloInstruction instruction;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    bool good = true;
    switch (field->number) {
      case 1: instruction.name = field->bytes; break;
      case 2: instruction.opcode = field->bytes; break;
      case 3: {
        MESHARD_ASSIGN_OR_RETURN(instruction.shape, read_shape(field->bytes));
        break;
      }
      case 7: {
        MESHARD_ASSIGN_OR_RETURN(instruction.metadata, read_metadata(field->bytes));
        break;
      }
      case 9: instruction.parameter_number = field->as_int(); break;
      case 14: good = append_numbers(*field, instruction.dimensions); break;
      case 28: instruction.custom_call_target = field->bytes; break;
      case 35: instruction.id = field->as_int(); break;
      case 36: good = append_numbers(*field, instruction.operands); break;
      case 38: good = append_numbers(*field, instruction.called_computations); break;
      case 40: {
        MESHARD_ASSIGN_OR_RETURN(instruction.sharding, OpSharding::from_bytes(field->bytes));
        break;
      }
      default: MESHARD_RETURN_IF_ERROR(read_collective_field(*field, instruction));
    }
    if (!good) return damaged("an instruction");
  }
  if (!reader.ok()) return damaged("an instruction");
  return instruction;
}

Result<HloComputation> read_computation(std::string_view bytes) {
  HloComputation computation;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    switch (field->number) {
      case 1: computation.name = field->bytes; break;
      case 2: {
        MESHARD_ASSIGN_OR_RETURN(auto instruction, read_instruction(field->bytes));
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

Result<void> read_program_shape(std::string_view bytes, HloModule& to) {
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    if (field->number == 1) {
      MESHARD_ASSIGN_OR_RETURN(HloShape shape, read_shape(field->bytes));
      to.parameters.push_back(std::move(shape));
    }
    if (field->number == 2) {
      MESHARD_ASSIGN_OR_RETURN(to.result, read_shape(field->bytes));
    }
  }
  return reader.ok() ? Result<void>() : damaged("the program's shape");
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

Result<void> read_module(std::string_view bytes, HloModule& to) {
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
      case 4: MESHARD_RETURN_IF_ERROR(read_program_shape(field->bytes, to)); break;
      case 6: to.entry_id = field->as_int(); break;
      case 8: MESHARD_RETURN_IF_ERROR(read_aliases(field->bytes, to.aliases)); break;
      case 12: {
        MESHARD_ASSIGN_OR_RETURN(to.output_sharding, OpSharding::from_bytes(field->bytes));
        break;
      }
      case 14: {
        MESHARD_ASSIGN_OR_RETURN(auto sharding, OpSharding::from_bytes(field->bytes));
        to.parameter_shardings.push_back(std::move(sharding));
        break;
      }
      case 15: MESHARD_RETURN_IF_ERROR(read_device_assignment(field->bytes, to)); break;
      default: break;
    }
  }
  return reader.ok() ? Result<void>() : damaged("the module");
}

}  // namespace

std::int64_t HloShape::byte_size() const {
  if (is_tuple) {
    std::int64_t sum = 0;
    for (const HloShape& part : tuple) sum += part.byte_size();
    return sum;
  }
  std::int64_t count = 1;
  for (std::int64_t extent : dimensions) count *= extent;
  return (count * bit_width(element) + 7) / 8;
}

std::string HloShape::to_string() const {
  if (is_tuple) return cat("(", join(tuple, ", "), ")");
  return cat(pjrt::to_string(element), "[", join(dimensions, ","), "]");
}

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

}  // namespace meshard::pjrt
