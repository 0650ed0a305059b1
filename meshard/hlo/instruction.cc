// Tested in meshard/hlo/module_test.cc.
#include "meshard/hlo/instruction.h"

#include <algorithm>

#include "meshard/hlo/internal/reader.h"

// Field numbers are those of xla/service/hlo.proto and xla/xla_data.proto.
namespace meshard {
namespace {

using internal::damaged;
using pjrt::WireField;
using pjrt::WireReader;

Result<HloMetadata> read_metadata(std::string_view bytes) {
  HloMetadata metadata;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    if (field->number == 2) metadata.op_name = field->bytes;
    if (field->number == 3) metadata.source_file = field->bytes;
    if (field->number == 4) metadata.source_line = field->as_int();
    if (field->number == 15) metadata.stack_frame = field->as_int();
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

// The value of a literal, from any of its lists of integers or bools, if it has exactly one.
Result<std::optional<std::int64_t>> read_literal(std::string_view bytes) {
  std::vector<std::int64_t> values;
  bool scalar = true;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    if (field->number == 1) {
      MESHARD_ASSIGN_OR_RETURN(HloShape shape, internal::read_shape(field->bytes));
      scalar = !shape.is_tuple && shape.dimensions.empty();
    }
    bool whole = field->number == 2 || (field->number >= 4 && field->number <= 7);
    if (!whole || !scalar || !values.empty()) continue;  // long lists are not kept
    if (field->type == 2 && field->bytes.size() > 10) continue;
    if (!append_numbers(*field, values)) return damaged("a literal");
  }
  if (!reader.ok()) return damaged("a literal");
  if (!scalar || values.size() != 1) return std::optional<std::int64_t>();
  return std::optional(values[0]);
}

Result<HloDotDimensions> read_dot(std::string_view bytes) {
  HloDotDimensions dot;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    bool good = true;
    switch (field->number) {
      case 1: good = append_numbers(*field, dot.lhs_contracting); break;
      case 2: good = append_numbers(*field, dot.rhs_contracting); break;
      case 3: good = append_numbers(*field, dot.lhs_batch); break;
      case 4: good = append_numbers(*field, dot.rhs_batch); break;
      default: break;
    }
    if (!good) return damaged("a dot's dimensions");
  }
  if (!reader.ok()) return damaged("a dot's dimensions");
  return dot;
}

Result<HloConvolutionDimensions> read_convolution(std::string_view bytes) {
  HloConvolutionDimensions to;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    bool good = true;
    switch (field->number) {
      case 3: to.kernel_input_feature = field->as_int(); break;
      case 4: to.kernel_output_feature = field->as_int(); break;
      case 6: good = append_numbers(*field, to.kernel_spatial); break;
      case 7: to.input_batch = field->as_int(); break;
      case 8: to.input_feature = field->as_int(); break;
      case 9: to.output_batch = field->as_int(); break;
      case 10: to.output_feature = field->as_int(); break;
      case 11: good = append_numbers(*field, to.input_spatial); break;
      case 12: good = append_numbers(*field, to.output_spatial); break;
      default: break;
    }
    if (!good) return damaged("a convolution's dimensions");
  }
  if (!reader.ok()) return damaged("a convolution's dimensions");
  return to;
}

Result<HloWindowDimension> read_window_dimension(std::string_view bytes) {
  // Zeros are not serialized.
  HloWindowDimension to{.size = 0, .stride = 0, .window_dilation = 0, .base_dilation = 0};
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    switch (field->number) {
      case 1: to.size = field->as_int(); break;
      case 2: to.stride = field->as_int(); break;
      case 3: to.padding_low = field->as_int(); break;
      case 4: to.padding_high = field->as_int(); break;
      case 5: to.window_dilation = field->as_int(); break;
      case 6: to.base_dilation = field->as_int(); break;
      default: break;
    }
  }
  if (!reader.ok()) return damaged("a window");
  return to;
}

Result<void> read_window(std::string_view bytes, std::vector<HloWindowDimension>& to) {
  WireReader reader(bytes);
  while (auto field = reader.next())
    if (field->number == 1) {
      MESHARD_ASSIGN_OR_RETURN(HloWindowDimension one, read_window_dimension(field->bytes));
      to.push_back(one);
    }
  return reader.ok() ? Result<void>() : damaged("a window");
}

Result<void> read_frontend_attributes(std::string_view bytes, HloInstruction& to) {
  WireReader reader(bytes);
  while (auto entry = reader.next()) {
    if (entry->number != 1) continue;
    std::pair<std::string, std::string> pair;
    WireReader fields(entry->bytes);
    while (auto field = fields.next()) {
      if (field->number == 1) pair.first = field->bytes;
      if (field->number == 2) pair.second = field->bytes;
    }
    if (!fields.ok()) return damaged("frontend attributes");
    to.frontend_attributes.push_back(std::move(pair));
  }
  return reader.ok() ? Result<void>() : damaged("frontend attributes");
}

// Reads the fields of a collective; true if the field was one of them.
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
    // Newer forms of the groups replace the old list, which may also be present.
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

// Reads the fields that determine how much an instruction computes; true if the field was one of
// them.
Result<bool> read_size_field(const WireField& field, HloInstruction& to) {
  switch (field.number) {
    case 15: MESHARD_RETURN_IF_ERROR(read_window(field.bytes, to.window)); return true;
    case 16: {
      MESHARD_ASSIGN_OR_RETURN(to.convolution, read_convolution(field.bytes));
      return true;
    }
    case 30: {
      MESHARD_ASSIGN_OR_RETURN(to.dot, read_dot(field.bytes));
      return true;
    }
    case 50: to.feature_groups = field.as_int(); return true;
    case 58: to.batch_groups = field.as_int(); return true;
    default: return false;
  }
}

// Reads the remaining fields: numbers and text.
Result<void> read_plain_field(const WireField& field, HloInstruction& to) {
  bool good = true;
  switch (field.number) {
    case 1: to.name = field.bytes; break;
    case 2: to.opcode = field.bytes; break;
    case 9: to.parameter_number = field.as_int(); break;
    case 11: to.fusion_kind = field.bytes; break;
    case 13: to.tuple_index = field.as_int(); break;
    case 14: good = append_numbers(field, to.dimensions); break;
    case 28: to.custom_call_target = field.bytes; break;
    case 35: to.id = field.as_int(); break;
    case 36: good = append_numbers(field, to.operands); break;
    case 38: good = append_numbers(field, to.called_computations); break;
    case 43: to.backend_config = field.bytes; break;
    case 63: to.comparison_direction = field.bytes; break;
    case 68: return read_frontend_attributes(field.bytes, to);
    default: break;
  }
  return good ? Result<void>() : damaged("an instruction");
}

}  // namespace

Result<HloInstruction> internal::read_instruction(std::string_view bytes) {
  HloInstruction instruction;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    switch (field->number) {
      case 3: {
        MESHARD_ASSIGN_OR_RETURN(instruction.shape, read_shape(field->bytes));
        continue;
      }
      case 7: {
        MESHARD_ASSIGN_OR_RETURN(instruction.metadata, read_metadata(field->bytes));
        continue;
      }
      case 8: {
        MESHARD_ASSIGN_OR_RETURN(instruction.literal, read_literal(field->bytes));
        continue;
      }
      case 40: {
        MESHARD_ASSIGN_OR_RETURN(instruction.sharding, HloSharding::from_bytes(field->bytes));
        continue;
      }
      default: break;
    }
    MESHARD_ASSIGN_OR_RETURN(bool done, read_collective_field(*field, instruction));
    if (!done) {
      MESHARD_ASSIGN_OR_RETURN(done, read_size_field(*field, instruction));
    }
    if (!done) MESHARD_RETURN_IF_ERROR(read_plain_field(*field, instruction));
  }
  if (!reader.ok()) return damaged("an instruction");
  return instruction;
}

std::string_view HloInstruction::frontend_attribute(std::string_view key) const {
  for (const auto& [attribute, value] : frontend_attributes)
    if (attribute == key) return value;
  return "";
}

}  // namespace meshard
