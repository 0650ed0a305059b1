// Tested in tests/partitioned/partition_test.cc.
#include "meshard/partitioned/partition.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>
#include <unordered_set>

#include "meshard/base/whole_file.h"
#include "meshard/hlo/module.h"
#include "meshard/partitioned/collective_call.h"
#include "meshard/partitioned/internal/edited_module.h"
#include "meshard/partitioned/internal/read_collective.h"
#include "meshard/partitioned/internal/rewriter.h"
#include "meshard/pjrt/wire.h"

namespace meshard {
namespace {

using internal::EditedComputation;
using internal::EditedInstruction;
using internal::EditedModule;
using pjrt::WireReader;
using pjrt::WireWriter;

// An instruction without names and ids: operands are counted from the start of the computation.
struct Canonical {
  std::string own;
  std::vector<Fingerprint> called;
};

struct CanonicalComputation {
  std::vector<Canonical> instructions;
  Fingerprint fingerprint;
};

using ByComputation = std::unordered_map<std::int64_t, CanonicalComputation>;

bool matters(int field) {
  enum { kMetadata = 7, kStatistics = 82, kOriginalValue = 88 };
  return field != kMetadata && field != kStatistics && field != kOriginalValue;
}

// The attributes of a collective end with its source line.
std::string_view without_source(std::string_view config) {
  return config.substr(0, config.find(", where = \""));
}

std::string canonical_fields(const EditedInstruction& instruction) {
  enum { kConfig = 43 };
  bool is_call = instruction.original->custom_call_target == kCollectiveTarget;
  WireWriter writer;
  WireReader reader(instruction.rest);
  while (auto field = reader.next()) {
    if (!matters(field->number)) continue;
    if (is_call && field->number == kConfig)
      writer.add_bytes(kConfig, without_source(field->bytes));
    else
      writer.add_field(*field);
  }
  return writer.take();
}

CanonicalComputation canonical(const EditedComputation& computation, const ByComputation& before) {
  CanonicalComputation to;
  std::unordered_map<std::int64_t, std::int64_t> ordinal;
  std::string all;
  for (const EditedInstruction& each : computation.instructions) {
    WireWriter writer;
    writer.add_bytes(1, each.opcode);
    writer.add_bytes(2, each.shape);
    for (std::int64_t id : each.operands)
      writer.add_varint(3, static_cast<std::uint64_t>(ordinal.at(id)));
    for (std::int64_t id : each.control_predecessors)
      writer.add_varint(4, static_cast<std::uint64_t>(ordinal.at(id)));
    writer.add_bytes(5, canonical_fields(each));
    Canonical one{writer.take(), {}};
    WireWriter whole;
    whole.add_bytes(1, one.own);
    for (std::int64_t id : each.called) {
      one.called.push_back(before.at(id).fingerprint);
      whole.add_bytes(2, one.called.back().to_string());
    }
    all += whole.take();
    ordinal[each.id] = std::ssize(ordinal);
    to.instructions.push_back(std::move(one));
  }
  append(all, "root ", ordinal.at(computation.root));
  to.fingerprint = fingerprint(all);
  return to;
}

struct CanonicalModule {
  EditedModule module;
  ByComputation computations;
  Fingerprint whole;

  static Result<CanonicalModule> from_bytes(std::string_view bytes) {
    CanonicalModule to;
    MESHARD_ASSIGN_OR_RETURN(to.module, EditedModule::from_bytes(bytes));
    for (const EditedComputation& each : to.module.computations)
      to.computations.emplace(each.id, canonical(each, to.computations));
    std::string all = to.computations.at(to.module.entry).fingerprint.to_string();
    enum { kName = 1, kEntryName = 2, kParameterNames = 3, kStackFrames = 17 };
    append(all, internal::without_field(to.module.host_program_shape, kParameterNames));
    append(all, to.module.input_output_alias);
    WireReader rest(to.module.rest);
    WireWriter kept;
    while (auto field = rest.next())
      if (field->number != kName && field->number != kEntryName && field->number != kStackFrames)
        kept.add_field(*field);
    append(all, kept.bytes());
    to.whole = fingerprint(all);
    return to;
  }
};

ModuleDifference difference_of(const EditedInstruction& a, const EditedInstruction& b) {
  ModuleDifference to{a.original->to_string(), b.original->to_string(), {}};
  if (a.opcode != b.opcode || !(a.original->shape == b.original->shape)) return to;
  if (a.original->custom_call_target == kCollectiveTarget &&
      b.original->custom_call_target == kCollectiveTarget)
    to.detail = cat(without_source(a.original->backend_config), " and ",
                    without_source(b.original->backend_config));
  else if (a.operands.size() != b.operands.size())
    to.detail = cat(a.operands.size(), " and ", b.operands.size(), " operands");
  else
    to.detail = "their operands or attributes differ";
  return to;
}

ModuleDifference find_difference(const CanonicalModule& first, const CanonicalModule& second) {
  std::int64_t a = first.module.entry, b = second.module.entry;
  while (true) {
    const auto &in_a = first.computations.at(a).instructions,
               &in_b = second.computations.at(b).instructions;
    const auto &of_a = first.module.find(a)->instructions,
               &of_b = second.module.find(b)->instructions;
    std::size_t i = 0, end = std::min(in_a.size(), in_b.size());
    while (i < end && in_a[i].own == in_b[i].own && in_a[i].called == in_b[i].called) ++i;
    if (i == end) {
      auto or_end = [&](const auto& of) {
        return i < of.size() ? of[i].original->to_string()
                             : std::string("the end of the computation");
      };
      if (in_a.size() == in_b.size())
        return {"the result", "the result", "the roots or the program's signatures differ"};
      return {or_end(of_a), or_end(of_b), {}};
    }
    if (in_a[i].own != in_b[i].own || in_a[i].called.size() != in_b[i].called.size())
      return difference_of(of_a[i], of_b[i]);
    std::size_t k = 0;
    while (in_a[i].called[k] == in_b[i].called[k]) ++k;
    a = of_a[i].called[k];
    b = of_b[i].called[k];
  }
}

Error invalid(const std::string& what) {
  return Error(ErrorCode::kInvalidArgument, "[partition] " + what);
}

// Rewriting reserves memory for each partition.
constexpr int kMostPartitions = 1 << 20;

Result<void> check_options(const RewriteOptions& options) {
  if (options.partitions < 1 || options.partitions > kMostPartitions)
    return invalid(cat("the number of partitions must be 1 to ", kMostPartitions, ", got ",
                       options.partitions));
  if (options.ranks.empty()) return {};
  if (options.ranks.size() != static_cast<std::size_t>(options.partitions))
    return invalid(
        cat(options.partitions, " partitions need as many ranks, got ", options.ranks.size()));
  std::unordered_set<int> seen;
  for (int rank : options.ranks)
    if (rank < 0 || !seen.insert(rank).second)
      return invalid(cat("rank ", rank, " is ", rank < 0 ? "negative" : "given twice"));
  return {};
}

namespace fs = std::filesystem;

// The bodies of manual regions are calls until the inliner has run, after the partitioner.
constexpr const char* kDumpedPasses = "spmd-partitioning|call-inliner";
constexpr std::string_view kPipeline = ".spmd-partitioner.after_";

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

Result<Fingerprint> module_fingerprint(std::string_view hlo) {
  MESHARD_ASSIGN_OR_RETURN(CanonicalModule module, CanonicalModule::from_bytes(hlo));
  return module.whole;
}

Result<std::optional<ModuleDifference>> first_difference(std::string_view first,
                                                         std::string_view second) {
  MESHARD_ASSIGN_OR_RETURN(CanonicalModule a, CanonicalModule::from_bytes(first));
  MESHARD_ASSIGN_OR_RETURN(CanonicalModule b, CanonicalModule::from_bytes(second));
  if (a.whole == b.whole) return std::optional<ModuleDifference>();
  return std::optional(find_difference(a, b));
}

Result<RewrittenModule> rewrite_collectives(std::string_view module,
                                            const RewriteOptions& options) {
  MESHARD_RETURN_IF_ERROR(check_options(options));
  MESHARD_ASSIGN_OR_RETURN(internal::EditedModule edited,
                           internal::EditedModule::from_bytes(module));
  internal::Placement placement{options.partitions, options.ranks, options.source_of};
  internal::Rewriter rewriter(edited, placement);
  MESHARD_RETURN_IF_ERROR(rewriter.run());
  RewrittenModule to{.hlo = edited.bytes(),
                     .communicates = rewriter.communicates(),
                     .calls = rewriter.calls(),
                     .uses_replicas = rewriter.uses_replicas(),
                     .fingerprint = {}};
  MESHARD_ASSIGN_OR_RETURN(to.fingerprint, module_fingerprint(to.hlo));
  return to;
}

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
