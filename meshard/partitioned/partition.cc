// Tested in tests/partitioned/partition_test.cc.
#include "meshard/partitioned/partition.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "meshard/base/temporary_folder.h"
#include "meshard/base/whole_file.h"
#include "meshard/hlo/module.h"
#include "meshard/partitioned/collective_call.h"
#include "meshard/partitioned/collective_service.h"
#include "meshard/pjrt/wire.h"

namespace meshard {
namespace {

namespace fs = std::filesystem;

// The bodies of manual regions are calls until the inliner has run, after the partitioner.
constexpr const char* kDumpedPasses = "spmd-partitioning|call-inliner";
constexpr std::string_view kPipeline = ".spmd-partitioner.after_";

Error invalid(const std::string& what) {
  return Error(ErrorCode::kInvalidArgument, "[partition] " + what);
}

Error unknown_form(const pjrt::Client& client, std::string_view what) {
  return Error(ErrorCode::kUnimplemented,
               cat("[partition] the compiler of plugin ", client.plugin().path(), " (PJRT API ",
                   client.plugin().version(), ") ", what,
                   "; programs cannot be partitioned for several processes with it"));
}

pjrt::CompileOptions dump_options(pjrt::CompileOptions options, const std::string& folder) {
  options.overrides["xla_dump_to"] = folder;
  options.overrides["xla_dump_hlo_as_proto"] = true;
  options.overrides["xla_dump_hlo_pass_re"] = std::string(kDumpedPasses);
  // The executable is not used.
  options.overrides["xla_backend_optimization_level"] = std::int64_t{0};
  return options;
}

// The names begin with the number of the module and of the pass, so the last one is the latest.
std::string last_dump(const std::string& folder) {
  std::string last;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    bool matches = name.find(kPipeline) != std::string::npos && name.ends_with(".hlo.pb");
    if (matches && name > last) last = name;
  }
  return last;
}

// The module of an HloProto.
std::string module_of(std::string_view proto) {
  pjrt::WireReader reader(proto);
  std::string module;
  while (auto field = reader.next())
    if (field->number == 1 && field->type == 2) module = field->bytes;
  return reader.ok() ? module : std::string();
}

// Why a module does not look as if it had been partitioned for these devices; empty if it does.
std::string doubt(std::string_view bytes, const pjrt::CompileOptions& options) {
  pjrt::WireWriter with_config;
  with_config.add_bytes(1, bytes);
  Result<HloModule> module = HloModule::from_bytes(with_config.bytes());
  if (!module.ok()) return cat("dumps modules in an unknown form: ", module.error().message());
  auto partitions = static_cast<std::size_t>(options.num_partitions);
  if (module->device_assignment.size() != partitions)
    return cat("dumps a module for ", module->device_assignment.size(), " devices instead of ",
               partitions);
  if (!module->output_sharding || module->parameter_shardings.size() != module->parameters.size())
    return "dumps a module that was not partitioned";
  return {};
}

}  // namespace

Result<std::string> partitioned_module(const pjrt::Client& client, std::string_view module,
                                       const pjrt::CompileOptions& options) {
  if (options.num_replicas != 1)
    return invalid(cat("a program of ", options.num_replicas, " replicas; it must have 1"));
  if (options.num_partitions < 2)
    return invalid(cat("a program of ", options.num_partitions, " partition is not partitioned"));
  MESHARD_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::create());
  auto compiled = client.compile(module, dump_options(options, folder.path()));
  std::string name = last_dump(folder.path());
  // What fails after the partitioner does not concern us: some collectives have no implementation
  // in this compiler.
  if (name.empty() && !compiled.ok()) return compiled.error();
  if (name.empty()) return unknown_form(client, "does not dump partitioned modules");
  MESHARD_ASSIGN_OR_RETURN(std::string proto,
                           read_whole_file((fs::path(folder.path()) / name).string()));
  std::string partitioned = module_of(proto);
  if (std::string why = doubt(partitioned, options); !why.empty()) return unknown_form(client, why);
  return partitioned;
}

Result<RewrittenModule> partition(const pjrt::Client& client, std::string_view module,
                                  const pjrt::CompileOptions& options, std::vector<int> ranks,
                                  std::function<std::string(std::string_view op_name)> source_of) {
  MESHARD_ASSIGN_OR_RETURN(std::string partitioned, partitioned_module(client, module, options));
  return rewrite_collectives(partitioned, {.partitions = options.num_partitions,
                                           .ranks = std::move(ranks),
                                           .source_of = std::move(source_of)});
}

pjrt::CompileOptions options_for_part(std::span<const pjrt::Device* const> devices,
                                      const pjrt::CompileOptions& options) {
  pjrt::CompileOptions local;
  local.use_spmd_partitioning = false;
  local.use_shardy = false;
  local.num_replicas = static_cast<int>(devices.size());
  for (const pjrt::Device* device : devices) local.device_assignment.push_back(device->id());
  local.overrides = options.overrides;
  return local;
}

Result<pjrt::LoadedExecutable> load_partitioned(const pjrt::Client& client,
                                                const RewrittenModule& module,
                                                std::span<const pjrt::Device* const> devices,
                                                const pjrt::CompileOptions& options) {
  if (devices.size() > 1 && module.uses_replicas)
    return Error(ErrorCode::kUnimplemented,
                 "[partition] the program has operations between replicas, which cannot run on "
                 "several devices of a process");
  if (module.hlo.find(kCollectiveTarget) != std::string::npos)
    MESHARD_RETURN_IF_ERROR(accept_collectives(client));
  return client.compile_hlo(module.hlo, options_for_part(devices, options));
}

}  // namespace meshard
