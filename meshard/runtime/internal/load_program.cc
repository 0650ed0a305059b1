// Tested in meshard/runtime/internal/program_cache_test.cc.
#include "meshard/runtime/internal/load_program.h"

#include "meshard/hlo/module.h"
#include "meshard/runtime/counters.h"
#include "meshard/runtime/internal/event_recorder.h"
#include "meshard/runtime/internal/program_here.h"

namespace meshard {
namespace {

// The shardings of a known program, for the same text on other devices: each mesh is replaced by
// the corresponding one.
class RetargetedShardings {
 public:
  RetargetedShardings(const LoweredModule& known, const LoweredModule& lowered)
      : known_(known), lowered_(lowered) {}

  std::vector<std::optional<Sharding>> of(const std::vector<std::optional<Sharding>>& before,
                                          const std::vector<LoweredValue>& values) const {
    std::vector<std::optional<Sharding>> after;
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (values[i].is_exact())
        after.push_back(*values[i].sharding);
      else if (lowered_.mesh->size() == 1)  // the text has no mesh; nothing was chosen
        after.push_back(
            Sharding::replicated(*lowered_.mesh, static_cast<std::size_t>(values[i].type.rank())));
      else
        after.push_back(of(*before[i]));
    }
    return after;
  }

 private:
  Sharding of(const Sharding& sharding) const {
    return Sharding(mesh_for(sharding.mesh()), sharding.spec()).with_unreduced_of(sharding);
  }

  // Equal texts have their meshes in the same order. A mesh that is not in the text was made for
  // the compiler's choice; it keeps its logical devices.
  Mesh mesh_for(const Mesh& mesh) const {
    for (std::size_t m = 0; m < known_.meshes.size(); ++m)
      if (known_.meshes[m] == mesh) return lowered_.meshes[m];
    std::vector<std::int64_t> ids;
    for (std::int64_t id : mesh.device_ids())
      ids.push_back(lowered_.mesh->device_id(*known_.mesh->position(id)));
    return Mesh({mesh.axes().begin(), mesh.axes().end()}, std::move(ids))
        .with_device_type(lowered_.mesh->device_type());
  }

  const LoweredModule& known_;
  const LoweredModule& lowered_;
};

pjrt::CompileOptions options_for(const std::vector<int>& devices) {
  pjrt::CompileOptions options;
  options.num_partitions = static_cast<int>(devices.size());
  options.device_assignment = devices;
  return options;
}

// Compiling a program that takes less time is about as fast as reading it.
constexpr std::chrono::milliseconds kLeastCompileTime{10};

Result<std::shared_ptr<ProgramHere>> with_shardings(const Platforms& platforms,
                                                    const pjrt::Client& client,
                                                    LoweredModule lowered,
                                                    pjrt::LoadedExecutable executable,
                                                    std::string_view interface) {
  ChosenShardings chosen;
  if (lowered.mesh) {
    MESHARD_ASSIGN_OR_RETURN(HloInterface read, HloInterface::from_bytes(interface));
    MESHARD_ASSIGN_OR_RETURN(chosen, read_shardings(lowered, read));
  } else {
    chosen.arguments.resize(lowered.arguments.size());
    chosen.results.resize(lowered.results.size());
  }
  return make_program_here(platforms, client, std::move(lowered), std::move(executable),
                           std::move(chosen));
}

void count_disk_miss(std::string_view name, const Error& error) {
  internal::count(internal::counters().disk_misses);
  internal::record_disk_miss(cat('"', name, "\": ", error.message()));
}

// None if it is not on disk, or cannot be loaded; disk_misses() has the reason.
std::shared_ptr<const LoadedProgram> load_from_disk(
    const Platforms& platforms, const pjrt::Client& client, const DiskCache& disk,
    const DiskCache::Key& key, const LoweredModule& lowered, const std::vector<int>& devices,
    SourceLocation where) {
  internal::HostSpan span;
  if (internal::records_events()) span.begin("load", lowered.name, where);
  std::optional<ExecutableFromDisk> found =
      load_executable(client, disk, key, options_for(devices), lowered.name);
  if (!found) return nullptr;
  Result<std::shared_ptr<ProgramHere>> loaded =
      with_shardings(platforms, client, lowered, std::move(found->executable), found->interface);
  if (!loaded.ok()) return count_disk_miss(lowered.name, loaded.error()), nullptr;
  (*loaded)->set_from_bytes(std::move(found->bytes));
  internal::count(internal::counters().disk_hits);
  return *std::move(loaded);
}

}  // namespace

pjrt::CompileOptions compile_options_for(const pjrt::Client& client, const LoweredModule& lowered,
                                         const std::vector<int>& devices) {
  pjrt::CompileOptions options = options_for(devices);
  options.use_shardy = lowered.use_shardy;
  if (lowered.shards_open_values) {
    const auto is_open = [](const LoweredValue& value) {
      return !value.sharding && !value.is_specified_otherwise;
    };
    for (const LoweredValue& value : lowered.arguments)
      options.propagate_to_parameters.push_back(is_open(value));
    for (const LoweredValue& value : lowered.results)
      options.propagate_to_outputs.push_back(is_open(value));
    options.parameter_count = lowered.arguments.size();
  }
  for (Quirk quirk : client.quirks().list()) {
    const QuirkRow& row = row_of(quirk);
    bool applies = !row.option_for_several_devices || options.num_partitions > 1;
    if (applies && !row.option_off.empty()) options.overrides[std::string(row.option_off)] = false;
  }
  return options;
}

std::optional<ExecutableFromDisk> load_executable(const pjrt::Client& client, const DiskCache& disk,
                                                  const DiskCache::Key& key,
                                                  const pjrt::CompileOptions& options,
                                                  std::string_view name) {
  std::optional<DiskCache::Entry> entry = disk.find(key);
  if (!entry) {
    internal::count(internal::counters().disk_misses);
    return std::nullopt;
  }
  Result<pjrt::LoadedExecutable> executable =
      client.deserialize_and_load(entry->executable, &options, &entry->signature);
  if (executable.ok())
    return ExecutableFromDisk{*std::move(executable), std::move(entry->interface),
                              std::move(entry->executable)};
  count_disk_miss(name, executable.error());
  return std::nullopt;
}

// A program that cannot be kept is compiled again next time.
void keep_executable(const DiskCache& disk, const DiskCache::Key& key,
                     const pjrt::LoadedExecutable& executable, std::string interface,
                     std::chrono::steady_clock::time_point begin) {
  if (std::chrono::steady_clock::now() - begin < kLeastCompileTime) return;
  Result<std::string> bytes = executable.executable().serialize();
  Result<void> kept =
      bytes.ok() ? disk.keep(key, {*std::move(bytes), executable.signature(), std::move(interface)})
                 : Result<void>(bytes.error());
  if (!kept.ok())
    internal::record_disk_miss(cat('"', key.name, "\" was not kept: ", kept.error().message()));
}

Result<std::shared_ptr<const LoadedProgram>> compile_and_load(
    const Platforms& platforms, const pjrt::Client& client, const DiskCache& disk,
    LoweredModule lowered, const std::vector<int>& devices, SourceLocation where) {
  pjrt::CompileOptions options = compile_options_for(client, lowered, devices);
  std::optional<DiskCache::Key> key;
  // A program that calls this process refers to its functions by number.
  if (disk.is_on() && !lowered.calls_host) {
    key = DiskCache::key_of(client, lowered, options);
    if (auto loaded = load_from_disk(platforms, client, disk, *key, lowered, devices, where))
      return loaded;
  }
  internal::HostSpan span;
  if (internal::records_events()) span.begin("compile", lowered.name, where);
  internal::count(internal::counters().compiles);
  auto begin = std::chrono::steady_clock::now();
  MESHARD_ASSIGN_OR_RETURN(pjrt::LoadedExecutable executable,
                           client.compile(lowered.text, options));
  MESHARD_ASSIGN_OR_RETURN(std::string interface, executable.take_interface());
  if (key) keep_executable(disk, *key, executable, interface, begin);
  MESHARD_ASSIGN_OR_RETURN(
      std::shared_ptr<const LoadedProgram> loaded,
      with_shardings(platforms, client, std::move(lowered), std::move(executable), interface));
  return loaded;
}

Result<std::shared_ptr<const LoadedProgram>> load_for_other_devices(
    const Platforms& platforms, const pjrt::Client& client, const LoadedProgram& known,
    LoweredModule lowered, const std::vector<int>& devices, SourceLocation where) {
  internal::HostSpan span;
  if (internal::records_events()) span.begin("load", lowered.name, where);
  pjrt::CompileOptions options = options_for(devices);
  MESHARD_ASSIGN_OR_RETURN(std::string bytes, known.executable().executable().serialize());
  MESHARD_ASSIGN_OR_RETURN(
      pjrt::LoadedExecutable executable,
      client.deserialize_and_load(bytes, &options, &known.executable().signature()));
  internal::count(internal::counters().retargets);
  RetargetedShardings retargeted(known.lowered(), lowered);
  ChosenShardings chosen{retargeted.of(known.shardings().arguments, lowered.arguments),
                         retargeted.of(known.shardings().results, lowered.results)};
  auto loaded = make_program_here(platforms, client, std::move(lowered), std::move(executable),
                                  std::move(chosen));
  loaded->set_from_bytes(std::move(bytes));
  return std::shared_ptr<const LoadedProgram>(std::move(loaded));
}

}  // namespace meshard
