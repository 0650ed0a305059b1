#include "meshard/runtime/program_cache.h"

#include "meshard/base/environment.h"
#include "meshard/base/stall.h"
#include "meshard/runtime/counters.h"
#include "meshard/runtime/event_recorder.h"
#include "meshard/runtime/host_calls.h"
#include "meshard/runtime/placement.h"

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

LoweredModule lower_recorded(const Program& program, SourceLocation where) {
  internal::HostSpan span;
  if (internal::records_events()) span.begin("lower", program.name, where);
  return lower(program, checks_nans());
}

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
    return Sharding(mesh_for(sharding.mesh()), sharding.spec())
        .with_unreduced(sharding.unreduced_axes());
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

// Loads the executable of `known` for the devices of `lowered`. The plugin compiles nothing.
Result<std::shared_ptr<const LoadedProgram>> retarget(const pjrt::Client& client,
                                                      const LoadedProgram& known,
                                                      LoweredModule lowered, SourceLocation where) {
  internal::HostSpan span;
  if (internal::records_events()) span.begin("load", lowered.name, where);
  pjrt::CompileOptions options;
  options.num_partitions = static_cast<int>(lowered.num_partitions());
  for (std::int64_t id : lowered.mesh->device_ids())
    options.device_assignment.push_back(device_of(client, id, {}).id());
  MESHARD_ASSIGN_OR_RETURN(std::string bytes, known.executable().executable().serialize());
  MESHARD_ASSIGN_OR_RETURN(
      pjrt::LoadedExecutable executable,
      client.deserialize_and_load(bytes, &options, &known.executable().signature()));
  internal::count(internal::counters().retargets);
  RetargetedShardings retargeted(known.lowered(), lowered);
  ChosenShardings chosen{retargeted.of(known.shardings().arguments, lowered.arguments),
                         retargeted.of(known.shardings().results, lowered.results)};
  return std::make_shared<const LoadedProgram>(client, std::move(lowered), std::move(executable),
                                               std::move(chosen));
}

}  // namespace

ProgramCache::ProgramCache()
    : most_(static_cast<std::size_t>(
          environment_integer("MESHARD_MOST_PROGRAMS", kMostPrograms, 1, 1'000'000'000).value())) {}

std::size_t ProgramCache::size() const {
  std::lock_guard lock(mutex_);
  return by_graph_.entries.size();
}

ProgramCache::Programs ProgramCache::shrink(Table& table) const {
  Programs gone;
  auto oldest = table.latest_first.end();
  while (table.entries.size() > most_ && oldest != table.latest_first.begin()) {
    --oldest;
    auto entry = table.entries.find(*oldest);
    if (!entry->second.program) continue;  // still being made
    gone.push_back(std::move(entry->second.program));
    table.entries.erase(entry);
    oldest = table.latest_first.erase(oldest);
  }
  return gone;
}

// Removes the programs of replaced clients after a restart. Those that are still being made are
// removed at a later call.
ProgramCache::Programs ProgramCache::forget_replaced() {
  Programs gone;
  std::uint32_t now = internal::runtime_generation.load(std::memory_order_acquire);
  if (now == generation_) return gone;
  for (Table* table : {&by_graph_, &by_text_})
    for (auto at = table->entries.begin(); at != table->entries.end();) {
      if (!at->second.program || at->second.program->is_current()) {
        ++at;
        continue;
      }
      gone.push_back(std::move(at->second.program));
      table->latest_first.erase(at->second.place);
      at = table->entries.erase(at);
    }
  generation_ = now;
  return gone;
}

// The entry of one program in a table: either found, or made by this thread while others wait.
class ProgramCache::Making {
 public:
  /// Waits while another thread makes the program.
  Making(ProgramCache& cache, Table& table, const Fingerprint& key)
      : cache_(cache), table_(table), key_(key) {
    Programs gone;  // released after the lock
    std::unique_lock lock(cache_.mutex_);
    gone = cache_.forget_replaced();
    while (true) {
      auto [at, fresh] = table_.entries.try_emplace(key_);
      Entry& entry = at->second;
      if (fresh) {
        table_.latest_first.push_front(key_);
        entry.place = table_.latest_first.begin();
        ours_ = true;
        return;
      }
      table_.latest_first.splice(table_.latest_first.begin(), table_.latest_first, entry.place);
      found_ = entry.program;
      if (found_ && found_->is_current()) return;
      if (found_) {  // the runtime was restarted while it was being made
        entry.program = nullptr;
        gone.push_back(std::move(found_));
        ours_ = true;
        return;
      }
      internal::wait_or_report(
          cache_.made_, lock, [&, before = cache_.num_made_] { return cache_.num_made_ != before; },
          [] { return "another thread to compile the same program"; });
    }
  }
  /// If no program was set, the next thread that requests it must make it.
  ~Making() {
    if (!ours_) return;
    Programs gone;  // released after the lock
    {
      std::lock_guard lock(cache_.mutex_);
      auto at = table_.entries.find(key_);
      if (found_) {
        at->second.program = found_;
        gone = cache_.shrink(table_);
      } else {
        table_.latest_first.erase(at->second.place);
        table_.entries.erase(at);
      }
      ++cache_.num_made_;
    }
    cache_.made_.notify_all();
  }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

  const std::shared_ptr<const LoadedProgram>& found() const { return found_; }
  void set(std::shared_ptr<const LoadedProgram> program) { found_ = std::move(program); }

 private:
  ProgramCache& cache_;
  Table& table_;
  Fingerprint key_;
  bool ours_ = false;
  std::shared_ptr<const LoadedProgram> found_;
};

std::shared_ptr<const LoadedProgram> ProgramCache::get(const Program& program,
                                                       SourceLocation where) {
  internal::WaitPlace place(where);
  Making entry(*this, by_graph_, graph_key(program));
  if (entry.found())
    internal::count(internal::counters().cache_hits);
  else
    entry.set(make(program, where));
  return entry.found();
}

std::shared_ptr<const LoadedProgram> ProgramCache::make(const Program& program,
                                                        SourceLocation where) {
  LoweredModule lowered = lower_recorded(program, where);
  const pjrt::Client& client =
      lowered.mesh ? runtime_client(*lowered.mesh, where) : runtime_client(where);
  if (lowered.mesh)  // before compiling, so that errors have the user's line
    for (std::int64_t id : lowered.mesh->device_ids()) device_of(client, id, where);
  if (lowered.calls_host)
    if (Result<void> accepted = internal::accept_host_calls(client); !accepted.ok())
      throw accepted.error().at(where).with_note(
          lowered.nan_checks ? "NaN checks are on, which call this process (set_check_nans)"
                             : "debug_print and pure_callback call this process");
  Making entry(*this, by_text_, fingerprint(cat(client.name(), ";", lowered.text)));
  const auto& same_text = entry.found();
  Result<std::shared_ptr<const LoadedProgram>> loaded =
      Error(ErrorCode::kUnknown, "");  // replaced below
  if (same_text && lowered.mesh) loaded = retarget(client, *same_text, lowered, where);
  if (!loaded.ok()) loaded = load_program(client, std::move(lowered), where);
  if (!loaded.ok()) {
    std::string of = client.addressable_devices()[0]->of_platform();
    Error error = loaded.error().at(where);
    throw of.empty() ? error : error.with_note(cat("while compiling for devices", of));
  }
  if (!same_text) entry.set(*loaded);
  return *std::move(loaded);
}

}  // namespace meshard
