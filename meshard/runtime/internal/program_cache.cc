#include "meshard/runtime/internal/program_cache.h"

#include "meshard/base/advice.h"
#include "meshard/base/environment.h"
#include "meshard/base/stall_report.h"
#include "meshard/runtime/compile_runner.h"
#include "meshard/runtime/counters.h"
#include "meshard/runtime/internal/device_assignment.h"
#include "meshard/runtime/internal/event_recorder.h"
#include "meshard/runtime/internal/fabric.h"
#include "meshard/runtime/internal/host_calls.h"
#include "meshard/runtime/internal/load_program.h"

namespace meshard {
namespace {

// Each executable of the CPU plugin uses about ten of the 65,530 memory mappings that Linux allows
// a process by default (vm.max_map_count).
constexpr std::size_t kMostPrograms = 1000;

Fingerprint graph_key(const Program& program) {
  Fingerprint graph = program.graph.fingerprint();
  std::string key =
      cat(graph, ";", program.name, program.unsharded ? ";1;" : ";", checks_nans() ? "nans;" : "");
  for (std::uint32_t donated : program.donated) append(key, cat(donated, ","));
  return fingerprint(key);
}

Fingerprint module_key(const LoweredModule& lowered) {
  std::string key = cat("module;", lowered.name, ";", lowered.use_shardy ? "1;" : "0;");
  if (lowered.mesh) {
    append(key, cat(lowered.mesh->device_type(), ";", *lowered.mesh, ";"));
    for (std::int64_t id : lowered.mesh->device_ids()) append(key, cat(id, ","));
  }
  return fingerprint(cat(key, ";", lowered.text));
}

LoweredModule lower_recorded(Platforms& platforms, const Program& program, SourceLocation where) {
  internal::HostSpan span;
  if (internal::records_events()) span.begin("lower", program.name, where);
  auto quirks = [&](const std::optional<Mesh>& mesh) {
    return internal::quirks_here(mesh ? platforms.client(*mesh, where) : platforms.client(where));
  };
  return lower(program, {.check_nans = checks_nans(), .quirks = quirks});
}

Advice advice_on_retarget(const LoweredModule& lowered, const Error& error, SourceLocation where) {
  return {"runtime.retarget",
          cat("[runtime] \"", lowered.name,
              "\", which was compiled for other devices, could not be loaded for those of ",
              *lowered.mesh, " and is compiled again: ", error.message()),
          where};
}

}  // namespace

ProgramCache::ProgramCache(Platforms& platforms, Result<std::int64_t> most, Result<DiskCache> disk)
    : platforms_(platforms),
      most_(std::move(most)),
      disk_(std::move(disk)),
      by_graph_(most_.ok() ? static_cast<std::size_t>(*most_) : kMostPrograms),
      by_text_(most_.ok() ? static_cast<std::size_t>(*most_) : kMostPrograms) {}

ProgramCache::ProgramCache(Platforms& platforms)
    : ProgramCache(platforms,
                   environment_integer("MESHARD_MOST_PROGRAMS", kMostPrograms, 1, 1'000'000'000),
                   DiskCache::of_process()) {}

ProgramCache::ProgramCache(Platforms& platforms, std::size_t most, DiskCache disk)
    : ProgramCache(platforms, Result<std::int64_t>(static_cast<std::int64_t>(most)),
                   std::move(disk)) {}

template <class Make>
std::shared_ptr<const LoadedProgram> ProgramCache::find_or_make(Table& table,
                                                                const Fingerprint& key, Make make) {
  auto matches = [&](const Entry& entry) {
    return entry.key == key && (!entry.program || entry.program->is_current());
  };
  auto made = [&] {
    table.erase_if([](const Entry& entry) { return !entry.program->is_current(); });
    return std::make_shared<const Entry>(Entry{key, make()});
  };
  return table
      .find_or_make(
          std::hash<Fingerprint>()(key), matches, std::make_shared<const Entry>(Entry{key}), made,
          Table::Waits{[] { return "another thread to compile the same program"; },
                       [] { throw InternalError("[runtime] a program compiles itself"); }})
      ->program;
}

std::shared_ptr<const LoadedProgram> ProgramCache::get(const Program& program,
                                                       SourceLocation where) {
  return find_or_load(program, graph_key(program), where);
}

std::shared_ptr<const LoadedProgram> ProgramCache::get(const LoweredModule& lowered,
                                                       SourceLocation where) {
  return find_or_load(lowered, module_key(lowered), where);
}

template <class What>
std::shared_ptr<const LoadedProgram> ProgramCache::find_or_load(const What& what,
                                                                const Fingerprint& key,
                                                                SourceLocation where) {
  (void)most_.value();
  (void)disk_.value();
  const internal::CompileRunner runner = internal::compile_runner.load(std::memory_order_acquire);
  if (!runner) return find_or_load_here(what, key, where);
  auto known = by_graph_.find(
      [&] { return std::hash<Fingerprint>()(key); },
      [&](const Entry& entry) { return entry.key == key && entry.program->is_current(); });
  if (known) {
    internal::count(internal::counters().cache_hits);
    return known->program;
  }
  auto made = std::make_shared<std::shared_ptr<const LoadedProgram>>();
  runner(what.name,
         [this, made, what, key, where] { *made = find_or_load_here(what, key, where); });
  return *made;
}

template <class What>
std::shared_ptr<const LoadedProgram> ProgramCache::find_or_load_here(const What& what,
                                                                     const Fingerprint& key,
                                                                     SourceLocation where) {
  internal::WaitPlace place(where);
  bool is_known = true;
  auto found = find_or_make(by_graph_, key, [&] {
    is_known = false;
    return make(what, where);
  });
  if (is_known) internal::count(internal::counters().cache_hits);
  return found;
}

const DiskCache& ProgramCache::disk_for(bool keep_on_disk) const {
  static const DiskCache no_disk("", 0);
  return keep_on_disk ? disk_.value() : no_disk;
}

std::shared_ptr<const LoadedProgram> ProgramCache::make(const Program& program,
                                                        SourceLocation where) {
  LoweredModule lowered = lower_recorded(platforms_, program, where);
  const pjrt::Client& client =
      lowered.mesh ? platforms_.client(*lowered.mesh, where) : platforms_.client(where);
  // Before compiling, so that a device that does not exist is an error at the user's line.
  std::vector<int> devices = device_assignment(client, lowered.mesh, where);
  if (lowered.calls_host)
    if (Result<void> accepted = internal::accept_host_calls(client); !accepted.ok())
      throw accepted.error().at(where).with_note(
          lowered.nan_checks ? "NaN checks are on, which call this process (set_check_nans)"
                             : "debug_print and pure_callback call this process");
  if (Result<void> accepted = internal::accept_lapack_calls(client, lowered.text); !accepted.ok())
    throw accepted.error().at(where);
  return platforms_.fabric(client).load(
      {program, lowered, devices, disk_for(program.keep_on_disk), where,
       [&] { return make_here(client, lowered, program.keep_on_disk, devices, where); }});
}

std::shared_ptr<const LoadedProgram> ProgramCache::make(const LoweredModule& lowered,
                                                        SourceLocation where) {
  const pjrt::Client& client =
      lowered.mesh ? platforms_.client(*lowered.mesh, where) : platforms_.client(where);
  std::vector<int> devices = device_assignment(client, lowered.mesh, where);
  if (lowered.mesh && !platforms_.fabric(client).has_all_devices(*lowered.mesh))
    throw_invalid(where, "[runtime] the program \"", lowered.name,
                  "\" was read from a file, and such programs run on devices of one process, but ",
                  *lowered.mesh, " has devices of several");
  return make_here(client, lowered, /*keep_on_disk=*/true, devices, where);
}

// The program on devices of this process.
std::shared_ptr<const LoadedProgram> ProgramCache::make_here(const pjrt::Client& client,
                                                             const LoweredModule& lowered,
                                                             bool keep_on_disk,
                                                             const std::vector<int>& devices,
                                                             SourceLocation where) {
  Fingerprint text = fingerprint(cat(client.name(), lowered.use_shardy ? ";" : ";gspmd;",
                                     lowered.num_partitions(), ";", lowered.text));
  bool is_known = true;
  auto same_text = find_or_make(by_text_, text, [&] {
    is_known = false;
    return compile(client, lowered, keep_on_disk, devices, where);
  });
  if (!is_known) return same_text;
  // The disk has what `same_text` was loaded from, for any devices.
  if (!lowered.mesh || same_text->is_from_bytes())
    return compile(client, lowered, keep_on_disk, devices, where);
  Result<std::shared_ptr<const LoadedProgram>> loaded =
      load_for_other_devices(platforms_, client, *same_text, lowered, devices, where);
  if (loaded.ok()) return *std::move(loaded);
  // A plugin that cannot serialize programs says so each time.
  if (loaded.error().code() != ErrorCode::kUnimplemented)
    internal::advise(advice_on_retarget(lowered, loaded.error(), where));
  return compile(client, lowered, keep_on_disk, devices, where);
}

std::shared_ptr<const LoadedProgram> ProgramCache::compile(const pjrt::Client& client,
                                                           const LoweredModule& lowered,
                                                           bool keep_on_disk,
                                                           const std::vector<int>& devices,
                                                           SourceLocation where) {
  Result<std::shared_ptr<const LoadedProgram>> compiled =
      compile_and_load(platforms_, client, disk_for(keep_on_disk), lowered, devices, where);
  if (compiled.ok()) return *std::move(compiled);
  Error error = compiled.error().at(where);
  std::string of = client.addressable_devices()[0]->of_platform();
  throw of.empty() ? error : error.with_note(cat("while compiling for devices", of));
}

}  // namespace meshard
