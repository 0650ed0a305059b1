// Tested in tests/plugin/pjrt_conformance_test.cc.
#include "meshard/pjrt/executable.h"

#include <utility>

#include "meshard/pjrt/internal/c_api.h"
#include "meshard/pjrt/internal/extensions.h"

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

}  // namespace

Executable::Executable(const PJRT_Api* api, PJRT_Executable* raw, ClientRef client)
    : client_(std::move(client)), api_(api), raw_(raw) {}

Executable::Executable(Executable&& other) noexcept
    : client_(std::move(other.client_)),
      api_(other.api_),
      raw_(std::exchange(other.raw_, nullptr)) {}

Executable& Executable::operator=(Executable&& other) noexcept {
  std::swap(client_, other.client_);
  std::swap(api_, other.api_);
  std::swap(raw_, other.raw_);
  return *this;
}

Executable::~Executable() { release(); }

void Executable::release() noexcept {
  if (raw_ == nullptr) return;
  MESHARD_PJRT_ARGS(PJRT_Executable_Destroy, args);
  args.executable = raw_;
  (void)MESHARD_PJRT_CALL(api_, PJRT_Executable_Destroy, args);
  raw_ = nullptr;
}

Result<std::string> Executable::name() const {
  MESHARD_PJRT_QUERY(api_, PJRT_Executable_Name, args, executable, raw_);
  return std::string(args.executable_name, args.executable_name_size);
}

Result<int> Executable::num_replicas() const {
  MESHARD_PJRT_QUERY(api_, PJRT_Executable_NumReplicas, args, executable, raw_);
  return static_cast<int>(args.num_replicas);
}

Result<int> Executable::num_partitions() const {
  MESHARD_PJRT_QUERY(api_, PJRT_Executable_NumPartitions, args, executable, raw_);
  return static_cast<int>(args.num_partitions);
}

Result<std::vector<ArrayType>> Executable::output_types() const {
  MESHARD_PJRT_QUERY(api_, PJRT_Executable_OutputElementTypes, elements, executable, raw_);
  MESHARD_PJRT_QUERY(api_, PJRT_Executable_OutputDimensions, dimensions, executable, raw_);
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
  MESHARD_PJRT_QUERY(api_, PJRT_Executable_Fingerprint, args, executable, raw_);
  return std::string(args.executable_fingerprint, args.executable_fingerprint_size);
}

Result<std::int64_t> Executable::generated_code_size() const {
  MESHARD_PJRT_QUERY(api_, PJRT_Executable_SizeOfGeneratedCodeInBytes, args, executable, raw_);
  return args.size_in_bytes;
}

Result<std::string> Executable::optimized_program() const {
  PJRT_Program program{};
  program.struct_size = PJRT_Program_STRUCT_SIZE;
  MESHARD_PJRT_ARGS(PJRT_Executable_OptimizedProgram, args);
  args.executable = raw_;
  args.program = &program;
  // The first call returns the size; the second fills the bytes.
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(api_, PJRT_Executable_OptimizedProgram, args));
  std::string bytes(program.code_size, '\0');
  program.code = bytes.data();
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(api_, PJRT_Executable_OptimizedProgram, args));
  std::string_view format(program.format, program.format_size);
  if (format != "hlo_with_config")
    return Error(ErrorCode::kUnimplemented,
                 cat("[pjrt] the plugin returned the optimized program in format ", format,
                     ", expected hlo_with_config"));
  return bytes;
}

Result<CompiledMemoryStats> Executable::memory_stats() const {
  MESHARD_PJRT_QUERY(api_, PJRT_Executable_GetCompiledMemoryStats, args, executable, raw_);
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
  MESHARD_PJRT_QUERY(api_, PJRT_Executable_GetCostAnalysis, args, executable, raw_);
  return internal::read_named_values(args.properties, args.num_properties);
}

Result<std::string> Executable::serialize() const {
  MESHARD_PJRT_QUERY(api_, PJRT_Executable_Serialize, args, executable, raw_);
  std::string bytes(args.serialized_bytes, args.serialized_bytes_size);
  args.serialized_executable_deleter(args.serialized_executable);
  return bytes;
}

Result<Shardings> Executable::parameter_shardings() const {
  return read_shardings(api_, raw_, true);
}
Result<Shardings> Executable::output_shardings() const { return read_shardings(api_, raw_, false); }

}  // namespace meshard::pjrt
