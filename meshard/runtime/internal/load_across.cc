// Tested in tests/processes/check_across.py.
#include "meshard/runtime/internal/load_across.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "meshard/hlo/interface.h"
#include "meshard/partitioned/partition.h"
#include "meshard/pjrt/wire.h"
#include "meshard/runtime/counters.h"
#include "meshard/runtime/internal/agreement.h"
#include "meshard/runtime/internal/device_assignment.h"
#include "meshard/runtime/internal/event_recorder.h"
#include "meshard/runtime/internal/load_program.h"

namespace meshard {
namespace {

// The source line of an op, from its location in a module: `main/n17`, `n17.2`. Empty if unknown.
std::string source_of(const Graph& graph, std::string_view location) {
  std::string_view last = location.substr(location.rfind('/') + 1);
  if (last.size() < 2 || last[0] != 'n') return {};
  last.remove_prefix(1);
  if (last.find_first_not_of("0123456789.") != std::string_view::npos) return {};
  if (const Node* node = graph.find(std::string(last)))
    return node->where().known() ? node->where().to_string() : std::string();
  std::uint32_t number = 0;
  auto [end, error] = std::from_chars(last.data(), last.data() + last.size(), number);
  if (error != std::errc() || number >= graph.num_leaves()) return {};
  SourceLocation where = graph.source(number);
  return where.known() ? where.to_string() : std::string();
}

// The form in which modules are read.
std::string with_config(std::string_view module) {
  pjrt::WireWriter writer;
  writer.add_bytes(1, module);
  return writer.take();
}

// The reverse.
std::string without_config(std::string_view bytes) {
  pjrt::WireReader reader(bytes);
  while (auto field = reader.next())
    if (field->number == 1) return std::string(field->bytes);
  return {};
}

std::vector<std::uint32_t> donated_by(const std::string& module) {
  std::vector<std::uint32_t> donated;
  if (auto signature = pjrt::ExecutableSignature::from_module(module); signature.ok())
    for (int i : signature->donated) donated.push_back(static_cast<std::uint32_t>(i));
  return donated;
}

// The mesh as the compiler sees it.
std::vector<int> logical_devices(const Mesh& mesh) {
  std::vector<int> devices;
  for (std::int64_t i = 0; i < mesh.size(); ++i) devices.push_back(static_cast<int>(i));
  return devices;
}

// The part of this process: from disk (null: none), or compiled.
Result<pjrt::LoadedExecutable> load_part(const pjrt::Client& client, const DiskCache* disk,
                                         const std::string& name, const RewrittenModule& module,
                                         std::span<const pjrt::Device* const> devices,
                                         const pjrt::CompileOptions& options) {
  std::optional<DiskCache::Key> key;
  if (disk) {
    MESHARD_RETURN_IF_ERROR(accept_collectives(client));
    pjrt::CompileOptions own = options_for_part(devices, options);
    LoweredModule part;
    part.name = name;
    part.text = module.hlo;
    key = DiskCache::key_of(client, part, own);
    auto loaded = load_executable(client, *disk, *key, own, name);
    if (loaded) {
      internal::count(internal::counters().disk_hits);
      return std::move(loaded->executable);
    }
  }
  internal::count(internal::counters().compiles);
  auto begin = std::chrono::steady_clock::now();
  MESHARD_ASSIGN_OR_RETURN(pjrt::LoadedExecutable compiled,
                           load_partitioned(client, module, devices, options));
  if (key) keep_executable(*disk, *key, compiled, {}, begin);  // its module is known
  return compiled;
}

// The processes of a program's mesh.
struct Members {
  std::vector<int> ranks;  // ascending
  bool others = false;     // this process is none of them
};

// The partitioned module, if all processes of the mesh load the same program.
Result<std::string> agreed_module(AcrossProcesses& across, const Graph& graph,
                                  const LoweredModule& lowered, const Members& members,
                                  const pjrt::CompileOptions& options, SourceLocation where) {
  MESHARD_ASSIGN_OR_RETURN(std::chrono::milliseconds limit, wait_for_processes());
  Intention intention{.ranks = members.ranks,
                      .rank = across.rank(),
                      .key = members.others ? std::string() : across.next_step(members.ranks),
                      .fingerprint = program_fingerprint(lowered),
                      .what = intention_text(lowered, where),
                      .announced_as = announced_name(across, lowered),
                      .details = [&] { return text_with_sources(lowered, graph); }};
  Store& store = across.run().store();
  if (members.others) return result_of_others(store, intention, limit);
  auto partitioned = [&]() -> Result<std::string> {
    MESHARD_ASSIGN_OR_RETURN(pjrt::Client partitioner, across.partitioner());
    return partitioned_module(partitioner, lowered.text, options);
  };
  return agree(store, intention, partitioned, limit);
}

}  // namespace

Fingerprint program_fingerprint(const LoweredModule& lowered) {
  std::string devices;
  for (std::int64_t id : lowered.mesh->device_ids()) append(devices, cat(id, ","));
  return fingerprint(cat(lowered.text, devices));
}

std::string text_with_sources(const LoweredModule& lowered, const Graph& graph) {
  std::string out = cat("devices ", *lowered.mesh, "\n");
  std::string_view rest = lowered.text;
  constexpr std::string_view kLocation = "loc(\"";
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    std::size_t at = line.rfind(kLocation);
    if (at == std::string_view::npos) {
      append(out, cat(line, "\n"));
      continue;
    }
    std::string_view name = line.substr(at + kLocation.size());
    name = name.substr(0, name.find('"'));
    // The number of an op says nothing: an op before it may be more or less.
    std::string_view op = line.substr(0, line.find_last_not_of(' ', at - 1) + 1);
    append(out, cat(op, "\t", source_of(graph, name), "\n"));
  }
  return out;
}

std::string intention_text(const LoweredModule& lowered, SourceLocation where) {
  return cat("run \"", lowered.name, "\"", where.known() ? cat(" at ", where) : "");
}

ChosenShardings shardings_on_one_device(const LoweredModule& lowered) {
  auto of = [&](const std::vector<LoweredValue>& values) {
    std::vector<std::optional<Sharding>> shardings;
    for (const LoweredValue& value : values)
      shardings.push_back(
          value.is_exact()
              ? *value.sharding
              : Sharding::replicated(*lowered.mesh, static_cast<std::size_t>(value.type.rank())));
    return shardings;
  };
  return {of(lowered.arguments), of(lowered.results)};
}

std::string announced_name(const AcrossProcesses& across, const LoweredModule& lowered) {
  return across.announcement(processes_of(across.client(), *lowered.mesh),
                             cat(program_fingerprint(lowered)));
}

Result<void> announce_program(AcrossProcesses& across, const std::string& name,
                              const Result<std::shared_ptr<const LoadedProgram>>& loaded) {
  Store& store = across.run().store();
  if (!loaded.ok()) return announce(store, name, loaded.error());
  MESHARD_ASSIGN_OR_RETURN(std::string module,
                           (*loaded)->executable().executable().optimized_program());
  return announce(store, name, without_config(pjrt::interface_bytes(module)));
}

Result<std::shared_ptr<const LoadedProgram>> load_across(
    const Platforms& platforms, AcrossProcesses& across, const DiskCache& disk,
    const Program& program, LoweredModule lowered, SourceLocation where) {
  const pjrt::Client client = across.client();
  const Mesh& mesh = *lowered.mesh;
  std::vector<int> ranks = processes_of(client, mesh);
  // The ids of the run's devices count up from 0, as their ranks do.
  std::vector<int> devices;
  for (std::int64_t id : mesh.device_ids()) devices.push_back(static_cast<int>(id));
  std::vector<LocalPosition> here = local_positions(client, mesh, where);
  if (mesh.size() == 1 && here.empty()) {
    ChosenShardings chosen = shardings_on_one_device(lowered);
    return std::make_shared<const LoadedProgram>(platforms, client, std::move(lowered),
                                                 std::nullopt, false, program.donated,
                                                 std::move(chosen));
  }
  across.run().entering(cat("load of \"", lowered.name, "\", ", where));
  pjrt::CompileOptions options = compile_options_for(client, logical_devices(mesh));
  internal::HostSpan span;
  if (internal::records_events()) span.begin("compile", lowered.name, where);
  MESHARD_ASSIGN_OR_RETURN(
      std::string module,
      agreed_module(across, program.graph, lowered, {ranks, here.empty()}, options, where));
  std::string readable = with_config(module);
  MESHARD_ASSIGN_OR_RETURN(HloInterface read, HloInterface::from_bytes(readable));
  MESHARD_ASSIGN_OR_RETURN(ChosenShardings chosen, read_shardings(lowered, read));
  std::optional<pjrt::LoadedExecutable> executable;
  bool communicates = false;
  std::vector<std::uint32_t> donated = donated_by(readable);
  if (!here.empty()) {
    MESHARD_ASSIGN_OR_RETURN(
        RewrittenModule rewritten,
        rewrite_collectives(module, {.partitions = static_cast<int>(mesh.size()),
                                     .ranks = devices,
                                     .source_of = [&](std::string_view op_name) {
                                       return source_of(program.graph, op_name);
                                     }}));
    communicates = rewritten.communicates;
    const bool keep = disk.is_on() && !lowered.calls_host;
    std::vector<const pjrt::Device*> own;
    for (const LocalPosition& at : here) own.push_back(at.device);
    MESHARD_ASSIGN_OR_RETURN(executable, load_part(client, keep ? &disk : nullptr, lowered.name,
                                                   rewritten, own, options));
    donated.clear();
    for (int i : executable->signature().donated) donated.push_back(static_cast<std::uint32_t>(i));
  }
  across.run().entering("");
  const LaunchHistory::Step step{fingerprint(module), cat('"', lowered.name, '"')};
  OrderedStep ordered{across.order().history()->track(ranks),
                      std::make_shared<const LaunchHistory::Step>(step)};
  return std::make_shared<const LoadedProgram>(
      platforms, client, std::move(lowered), std::move(executable), communicates,
      std::move(donated), std::move(chosen), std::move(ordered));
}

}  // namespace meshard
