// Tested in tests/plugin/pjrt_conformance_test.cc.
#include "meshard/pjrt/executable.h"

#include <algorithm>
#include <array>
#include <utility>

#include "meshard/pjrt/internal/c_api.h"
#include "meshard/pjrt/wire.h"

namespace meshard::pjrt {
namespace {

// Extension 19 of newer headers: an array of serialized OpShardings.
struct ShardingsArgs {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  std::size_t count;
  const char* const* shardings;
  const std::size_t* sizes;
};
struct ShardingsExtension {
  PJRT_Extension_Base base;
  PJRT_Error* (*parameters)(ShardingsArgs*);
  PJRT_Error* (*outputs)(ShardingsArgs*);
};

using Shardings = std::optional<std::vector<std::string>>;

Result<Shardings> read_shardings(const PJRT_Api* api, PJRT_Executable* raw, bool of_parameters) {
  for (auto* base = api->extension_start; base != nullptr; base = base->next) {
    if (type_of(*base) != kShardingsExtension || base->struct_size < sizeof(ShardingsExtension))
      continue;
    auto* extension = reinterpret_cast<const ShardingsExtension*>(base);
    ShardingsArgs args{};
    args.struct_size = sizeof args;
    args.executable = raw;
    auto* call = of_parameters ? extension->parameters : extension->outputs;
    MESHARD_RETURN_IF_ERROR(internal::take_error(api, call(&args), "PJRT_Shardings"));
    std::vector<std::string> all;
    for (std::size_t i = 0; args.shardings != nullptr && i < args.count; ++i)
      all.emplace_back(args.shardings[i], args.sizes[i]);
    return Shardings(std::move(all));
  }
  return Shardings();
}

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

Result<std::string> Executable::name() const {
  MESHARD_PJRT_QUERY(own_.api, PJRT_Executable_Name, args, executable, own_.raw);
  return std::string(args.executable_name, args.executable_name_size);
}

Result<int> Executable::num_replicas() const {
  MESHARD_PJRT_QUERY(own_.api, PJRT_Executable_NumReplicas, args, executable, own_.raw);
  return static_cast<int>(args.num_replicas);
}

Result<int> Executable::num_partitions() const {
  MESHARD_PJRT_QUERY(own_.api, PJRT_Executable_NumPartitions, args, executable, own_.raw);
  return static_cast<int>(args.num_partitions);
}

Result<std::vector<ArrayType>> Executable::output_types() const {
  MESHARD_PJRT_QUERY(own_.api, PJRT_Executable_OutputElementTypes, elements, executable, own_.raw);
  MESHARD_PJRT_QUERY(own_.api, PJRT_Executable_OutputDimensions, dimensions, executable, own_.raw);
  if (elements.num_output_types != dimensions.num_outputs)
    return Error(ErrorCode::kInternal,
                 cat("[pjrt] the plugin reports ", elements.num_output_types, " output types but ",
                     dimensions.num_outputs, " output shapes"));
  std::vector<ArrayType> types;
  const std::int64_t* at = dimensions.dims;
  for (std::size_t i = 0; i < dimensions.num_outputs; ++i) {
    std::size_t rank = dimensions.dim_sizes[i];
    types.push_back({static_cast<ElementType>(elements.output_types[i]),
                     Dimensions(std::span<const std::int64_t>(at, rank))});
    at += rank;
  }
  return types;
}

Result<std::string> Executable::fingerprint() const {
  MESHARD_PJRT_QUERY(own_.api, PJRT_Executable_Fingerprint, args, executable, own_.raw);
  return std::string(args.executable_fingerprint, args.executable_fingerprint_size);
}

Result<std::int64_t> Executable::generated_code_size() const {
  MESHARD_PJRT_QUERY(own_.api, PJRT_Executable_SizeOfGeneratedCodeInBytes, args, executable,
                     own_.raw);
  return args.size_in_bytes;
}

Result<std::string> Executable::optimized_program() const {
  PJRT_Program program{};
  program.struct_size = PJRT_Program_STRUCT_SIZE;
  MESHARD_PJRT_ARGS(PJRT_Executable_OptimizedProgram, args);
  args.executable = own_.raw;
  args.program = &program;
  // The first call returns the size; the second fills the bytes.
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(own_.api, PJRT_Executable_OptimizedProgram, args));
  std::string bytes(program.code_size, '\0');
  program.code = bytes.data();
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(own_.api, PJRT_Executable_OptimizedProgram, args));
  std::string_view format(program.format, program.format_size);
  if (format != "hlo_with_config")
    return Error(ErrorCode::kUnimplemented,
                 cat("[pjrt] the plugin returned the optimized program in format ", format,
                     ", expected hlo_with_config"));
  return bytes;
}

Result<CompiledMemoryStats> Executable::memory_stats() const {
  MESHARD_PJRT_QUERY(own_.api, PJRT_Executable_GetCompiledMemoryStats, args, executable, own_.raw);
  CompiledMemoryStats stats;
  stats.generated_code = args.generated_code_size_in_bytes;
  stats.arguments = args.argument_size_in_bytes;
  stats.outputs = args.output_size_in_bytes;
  stats.aliases = args.alias_size_in_bytes;
  stats.temporaries = args.temp_size_in_bytes;
  stats.peak = args.peak_memory_in_bytes;
  stats.host_arguments = args.host_argument_size_in_bytes;
  stats.host_outputs = args.host_output_size_in_bytes;
  stats.host_temporaries = args.host_temp_size_in_bytes;
  return stats;
}

Result<std::vector<NamedValue>> Executable::cost_analysis() const {
  MESHARD_PJRT_QUERY(own_.api, PJRT_Executable_GetCostAnalysis, args, executable, own_.raw);
  return internal::read_named_values(args.properties, args.num_properties);
}

Result<std::string> Executable::serialize() const {
  MESHARD_PJRT_QUERY(own_.api, PJRT_Executable_Serialize, args, executable, own_.raw);
  std::string bytes(args.serialized_bytes, args.serialized_bytes_size);
  args.serialized_executable_deleter(args.serialized_executable);
  return bytes;
}

Result<Shardings> Executable::parameter_shardings() const {
  return read_shardings(own_.api, own_.raw, true);
}
Result<Shardings> Executable::output_shardings() const {
  return read_shardings(own_.api, own_.raw, false);
}

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
  return std::ranges::any_of(kPrefixes,
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
  std::ranges::sort(donated);
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
    if (std::ranges::binary_search(donated, static_cast<int>(i))) text += " donated";
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
