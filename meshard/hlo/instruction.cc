// Tested in meshard/hlo/module_test.cc.
#include "meshard/hlo/instruction.h"

#include "meshard/hlo/internal/reader.h"

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

}  // namespace meshard
