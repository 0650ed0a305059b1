// Loads programs over devices of several processes, which meshard joins. The processes of the
// program's mesh first check that all of them are about to run the same program. The lowest one
// partitions it, and each compiles what its devices run. A process that has no device of the mesh
// only learns the shardings of the results.
// Tested in tests/processes/check_across.py.
#include "meshard/runtime/internal/across_processes/load_across.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "meshard/hlo/module.h"
#include "meshard/partitioned/partition.h"
#include "meshard/pjrt/wire.h"
#include "meshard/runtime/counters.h"
#include "meshard/runtime/internal/across_processes/across_processes.h"
#include "meshard/runtime/internal/across_processes/agreement.h"
#include "meshard/runtime/internal/device_assignment.h"
#include "meshard/runtime/internal/event_recorder.h"
#include "meshard/runtime/internal/launch_program.h"
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

// The name under which processes without a device of a program's mesh find what its compiler chose.
std::string announced_name(const AcrossProcesses& across, const LoweredModule& lowered) {
  return across.announcement(processes_of(across.client(), *lowered.mesh),
                             cat(program_fingerprint(lowered)));
}

// Tells them the shardings of a program that was loaded on several devices of this process, or the
// error.
Result<void> announce_program(AcrossProcesses& across, const std::string& name,
                              const Result<std::shared_ptr<const LoadedProgram>>& loaded) {
  Store& store = across.run().store();
  if (!loaded.ok()) return announce(store, name, loaded.error());
  MESHARD_ASSIGN_OR_RETURN(std::string module,
                           (*loaded)->executable().executable().optimized_program());
  return announce(store, name, without_config(pjrt::interface_bytes(module)));
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

// A program over devices of several processes.
class ProgramAcross final : public LoadedProgram {
 public:
  /// @param communicates whether the executable has the chain (partitioned/partition.h)
  /// @param step what is recorded of its launches
  ProgramAcross(const Platforms& platforms, AcrossProcesses& across, LoweredModule lowered,
                std::optional<pjrt::LoadedExecutable> executable, ChosenShardings chosen,
                std::vector<std::uint32_t> donated, bool communicates = false,
                OrderedStep step = {})
      : LoadedProgram(platforms, across.client(), std::move(lowered), std::move(executable),
                      std::move(chosen), std::move(donated)),
        across_(across),
        communicates_(communicates),
        step_(std::move(step)) {}

  Result<pjrt::Launch> launch(Arrays arguments, std::span<Tensor> results, SourceLocation where,
                              bool track) const override {
    if (!has_part()) return skip(arguments, results, where);
    const auto execute = [this](Lists given, Made made, const pjrt::LaunchOptions& options) {
      Result<pjrt::Launch> launch =
          communicates_ ? across_.order().execute(executable(), given, made, options, step_)
                        : executable().execute(given, made, options);
      internal::ReleasedArrays::of_thread().give_up();
      return launch;
    };
    return launch_by(0, execute, execute, arguments, results, where, track);
  }

  Result<void> look_at_whole(
      const std::function<Result<void>(const pjrt::LoadedExecutable&)>& look) const override {
    MESHARD_ASSIGN_OR_RETURN(pjrt::Client compiler, across_.partitioner());
    MESHARD_ASSIGN_OR_RETURN(
        pjrt::LoadedExecutable whole,
        compiler.compile(lowered().text, compile_options_for(compiler, lowered(),
                                                             logical_devices(*lowered().mesh))));
    return look(whole);
  }

 private:
  AcrossProcesses& across_;
  const bool communicates_;
  const OrderedStep step_;
};

// @pre some devices are of other processes
Result<std::shared_ptr<const LoadedProgram>> load_across(const Platforms& platforms,
                                                         AcrossProcesses& across,
                                                         const ProgramToLoad& what) {
  const pjrt::Client& client = across.client();
  LoweredModule& lowered = what.lowered;
  const SourceLocation where = what.where;
  const Mesh mesh = *lowered.mesh;
  std::vector<int> ranks = processes_of(client, mesh);
  std::vector<LocalPosition> here = local_positions(client, mesh, where);
  if (mesh.size() == 1 && here.empty()) {
    ChosenShardings chosen = shardings_on_one_device(lowered);
    return std::shared_ptr<const LoadedProgram>(
        std::make_shared<ProgramAcross>(platforms, across, std::move(lowered), std::nullopt,
                                        std::move(chosen), what.program.donated));
  }
  across.run().entering(cat("load of \"", lowered.name, "\", ", where));
  pjrt::CompileOptions options = compile_options_for(client, lowered, logical_devices(mesh));
  internal::HostSpan span;
  if (internal::records_events()) span.begin("compile", lowered.name, where);
  MESHARD_ASSIGN_OR_RETURN(
      std::string module,
      agreed_module(across, what.program.graph, lowered, {ranks, here.empty()}, options, where));
  std::string readable = with_config(module);
  MESHARD_ASSIGN_OR_RETURN(HloInterface read, HloInterface::from_bytes(readable));
  MESHARD_ASSIGN_OR_RETURN(ChosenShardings chosen, read_shardings(lowered, read));
  std::optional<pjrt::LoadedExecutable> executable;
  bool communicates = false;
  if (!here.empty()) {
    MESHARD_ASSIGN_OR_RETURN(
        RewrittenModule rewritten,
        rewrite_collectives(module, {.partitions = static_cast<int>(mesh.size()),
                                     // The ids of the run's devices count up from 0, as ranks.
                                     .ranks = what.devices,
                                     .source_of = [&](std::string_view op_name) {
                                       return source_of(what.program.graph, op_name);
                                     }}));
    communicates = rewritten.communicates;
    const bool keep = what.disk.is_on() && !lowered.calls_host;
    std::vector<const pjrt::Device*> own;
    for (const LocalPosition& at : here) own.push_back(at.device);
    MESHARD_ASSIGN_OR_RETURN(executable, load_part(client, keep ? &what.disk : nullptr,
                                                   lowered.name, rewritten, own, options));
  }
  across.run().entering("");
  const LaunchHistory::Step step{fingerprint(module), cat('"', lowered.name, '"')};
  OrderedStep ordered{across.order().history()->track(ranks),
                      std::make_shared<const LaunchHistory::Step>(step)};
  return std::shared_ptr<const LoadedProgram>(std::make_shared<ProgramAcross>(
      platforms, across, std::move(lowered), std::move(executable), std::move(chosen),
      donated_by(readable), communicates, std::move(ordered)));
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

std::shared_ptr<const LoadedProgram> AcrossProcesses::load(const ProgramToLoad& what) {
  if (!what.lowered.mesh) return what.load_here();
  if (reach_of(client(), *what.lowered.mesh) != Reach::kHere) {
    auto loaded = load_across(platforms(), *this, what);
    return loaded.ok() ? *std::move(loaded) : throw loaded.error().at(what.where);
  }
  Result<std::shared_ptr<const LoadedProgram>> loaded = [&]() -> decltype(loaded) {
    try {
      return what.load_here();
    } catch (const Error& error) {
      return error;
    }
  }();
  // On one device, the compiler has nothing to choose.
  if (what.lowered.mesh->size() > 1) {
    Result<void> announced = announce_program(*this, announced_name(*this, what.lowered), loaded);
    if (loaded.ok() && !announced.ok()) throw announced.error().at(what.where);
  }
  return loaded.ok() ? *std::move(loaded) : throw loaded.error();
}

}  // namespace meshard
