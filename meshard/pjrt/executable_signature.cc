// Tested in tests/plugin/pjrt_conformance_test.cc.
#include "meshard/pjrt/executable_signature.h"

#include <algorithm>
#include <array>

#include "meshard/pjrt/wire_fields.h"

namespace meshard::pjrt {
namespace {

constexpr std::string_view kWithCollectives = " with collectives";
constexpr std::string_view kReadingPartitionId = " reading the partition id";

constexpr std::string_view kModule = "the compiled module";

// ShapeProto {element_type 2, dimensions 3, tuple_shapes 4}; appends the leaves.
Result<void> read_shape(std::string_view bytes, std::vector<ArrayType>& leaves) {
  constexpr std::uint64_t kTuple = 13;
  std::uint64_t primitive = 0;
  std::vector<std::int64_t> dimensions;
  auto part = [&](const WireField& from) { return read_shape(from.bytes, leaves); };
  MESHARD_RETURN_IF_ERROR(
      read_message(bytes, kModule, field(2, primitive), field(3, dimensions), on_field(4, part)));
  if (primitive == kTuple) return {};
  leaves.push_back({element_type_of_primitive(static_cast<int>(primitive)),
                    Dimensions(std::span<const std::int64_t>(dimensions))});
  return {};
}

// HloInputOutputAliasProto {entries 1 {parameter_number 2}}.
Result<void> read_aliases(std::string_view bytes, std::vector<int>& donated) {
  auto entry = [&](const WireField& from) {
    donated.push_back(0);  // 0 is not serialized
    return read_message(from.bytes, kModule, field(2, donated.back()));
  };
  return read_message(bytes, kModule, on_field(1, entry));
}

// HloComputationProto {instructions 2 {opcode 2}}.
void read_opcodes(std::string_view computation, ExecutableSignature& to) {
  WireReader reader(computation);
  while (auto instruction = reader.next()) {
    if (instruction->number != 2) continue;
    WireReader fields(instruction->bytes);
    while (auto field = fields.next())
      if (field->number == 2) {
        to.has_collectives = to.has_collectives || is_collective_opcode(field->bytes);
        to.reads_partition_id = to.reads_partition_id || is_partition_id_opcode(field->bytes);
        break;
      }
  }
}

}  // namespace

ElementType element_type_of_primitive(int number) {
  // xla/xla_data.proto. 1 to 12 have the same numbers; 13 is a tuple, 14 opaque.
  constexpr std::array<std::int8_t, 34> kTable = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                                  12, 0,  0,  14, 13, 23, 15, 16, 17, 21, 22, 18,
                                                  19, 20, 24, 25, 26, 27, 0,  0,  29, 28};
  auto index = static_cast<std::size_t>(number);
  return static_cast<ElementType>(index < kTable.size() ? kTable[index] : 0);
}

bool is_collective_opcode(std::string_view opcode) {
  constexpr std::string_view kPrefixes[] = {"all-reduce",
                                            "all-gather",
                                            "reduce-scatter",
                                            "all-to-all",
                                            "ragged-all-to-all",
                                            "collective-permute",
                                            "collective-broadcast",
                                            "send",
                                            "recv"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return opcode.starts_with(prefix); });
}

bool is_partition_id_opcode(std::string_view opcode) {
  return opcode == "partition-id" || opcode == "replica-id";
}

Result<ExecutableSignature> ExecutableSignature::from_module(std::string_view module_with_config) {
  ExecutableSignature signature;
  auto into = [](std::vector<ArrayType>& leaves) {
    return [&leaves](const WireField& from) { return read_shape(from.bytes, leaves); };
  };
  // ProgramShapeProto {parameters 1, result 2}.
  auto program_shape = [&](const WireField& from) {
    return read_message(from.bytes, kModule, on_field(1, into(signature.parameters)),
                        on_field(2, into(signature.results)));
  };
  auto opcodes = [&](const WireField& from) { read_opcodes(from.bytes, signature); };
  auto aliases = [&](const WireField& from) { return read_aliases(from.bytes, signature.donated); };
  auto module = [&](const WireField& from) {
    return read_message(from.bytes, kModule, on_field(3, opcodes), on_field(4, program_shape),
                        on_field(8, aliases));
  };
  MESHARD_RETURN_IF_ERROR(read_message(module_with_config, kModule, on_field(1, module)));
  auto& donated = signature.donated;
  std::sort(donated.begin(), donated.end());
  donated.erase(std::unique(donated.begin(), donated.end()), donated.end());
  int count = static_cast<int>(signature.parameters.size());
  if (!donated.empty() && (donated.front() < 0 || donated.back() >= count)) return damaged(kModule);
  return signature;
}

std::string interface_bytes(std::string_view module_with_config) {
  // HloModuleProto {host_program_shape 4, input_output_alias 8, spmd_output_sharding 12,
  // spmd_parameters_shardings 14}.
  WireWriter kept;
  WireReader outer(module_with_config);
  while (auto module = outer.next()) {
    if (module->number != 1) continue;
    WireReader reader(module->bytes);
    while (auto field = reader.next())
      if (field->number == 4 || field->number == 8 || field->number == 12 || field->number == 14)
        kept.add_field(*field);
  }
  WireWriter with_config;
  with_config.add_message(1, kept);
  return with_config.take();
}

std::string ExecutableSignature::to_string() const {
  std::string text = "(";
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (i != 0) text += ", ";
    text += parameters[i].to_string();
    if (std::binary_search(donated.begin(), donated.end(), static_cast<int>(i))) text += " donated";
  }
  text += cat(") -> (", join(results, ", "), ")");
  if (has_collectives) text += kWithCollectives;
  if (reads_partition_id) text += kReadingPartitionId;
  return text;
}

Result<ExecutableSignature> ExecutableSignature::parse(std::string_view text) {
  ExecutableSignature signature;
  auto bad = [&] {
    return Error(ErrorCode::kInvalidArgument,
                 cat("[pjrt] expected a signature such as (f32[2] donated) -> (f32[2]), got \"",
                     text, "\""));
  };
  std::string_view rest = text;
  auto eat = [&](std::string_view word) {
    bool found = rest.starts_with(word);
    if (found) rest.remove_prefix(word.size());
    return found;
  };
  auto list = [&](std::vector<ArrayType>& types, bool may_donate) -> Result<void> {
    if (!eat("(")) return bad();
    while (!eat(")")) {
      if (!types.empty() && !eat(", ")) return bad();
      auto end = rest.find(']');
      if (end == std::string_view::npos) return bad();
      MESHARD_ASSIGN_OR_RETURN(ArrayType type, ArrayType::parse(rest.substr(0, end + 1)));
      rest.remove_prefix(end + 1);
      if (may_donate && eat(" donated"))
        signature.donated.push_back(static_cast<int>(types.size()));
      types.push_back(std::move(type));
    }
    return {};
  };
  MESHARD_RETURN_IF_ERROR(list(signature.parameters, true));
  if (!eat(" -> ")) return bad();
  MESHARD_RETURN_IF_ERROR(list(signature.results, false));
  signature.has_collectives = eat(kWithCollectives);
  signature.reads_partition_id = eat(kReadingPartitionId);
  if (!rest.empty()) return bad();
  return signature;
}

}  // namespace meshard::pjrt
