#include "meshard/runtime/program_cache.h"

#include "meshard/runtime/counters.h"
#include "meshard/runtime/event_recorder.h"
#include "meshard/runtime/placement.h"

namespace meshard {
namespace {

Fingerprint graph_key(const Program& program) {
  Fingerprint graph = program.graph.fingerprint();
  std::string key = cat(graph, ";", program.name, program.unsharded ? ";1;" : ";");
  for (std::uint32_t donated : program.donated) append(key, cat(donated, ","));
  return fingerprint(key);
}

// The same mesh, seen by the compiler: logical devices in place of ids.
bool same_logical_mesh(const LoweredModule& a, const LoweredModule& b) {
  if (!a.mesh || !b.mesh) return !a.mesh && !b.mesh;
  return std::equal(a.mesh->axes().begin(), a.mesh->axes().end(), b.mesh->axes().begin(),
                    b.mesh->axes().end());
}

LoweredModule lower_recorded(const Program& program, SourceLocation where) {
  internal::HostSpan span;
  if (internal::records_events()) span.begin("lower", program.name, where);
  return lower(program);
}

// `known`'s executable, loaded for the devices of `lowered`. The plugin compiles nothing.
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
  // The shardings are the known ones, over the new mesh.
  auto moved = [&](const std::vector<std::optional<Sharding>>& before,
                   const std::vector<LoweredValue>& values) {
    std::vector<std::optional<Sharding>> after;
    for (std::size_t i = 0; i < before.size(); ++i) {
      after.push_back(values[i].is_exact() ? *values[i].sharding
                                           : Sharding(*lowered.mesh, before[i]->spec()));
    }
    return after;
  };
  ChosenShardings chosen{moved(known.shardings().arguments, lowered.arguments),
                         moved(known.shardings().results, lowered.results)};
  return std::make_shared<const LoadedProgram>(client, std::move(lowered), std::move(executable),
                                               std::move(chosen));
}

}  // namespace

// The place of one program in a table: found there, or made by this thread while others wait.
class ProgramCache::Making {
 public:
  /// Waits while another thread makes it.
  Making(ProgramCache& cache, Programs& table, const Fingerprint& key)
      : cache_(cache), table_(table), key_(key) {
    std::unique_lock lock(cache_.mutex_);
    while (true) {
      auto [entry, fresh] = table_.try_emplace(key_, nullptr);
      ours_ = fresh;
      found_ = entry->second;
      if (ours_ || found_) return;
      cache_.made_.wait(lock);
    }
  }
  /// Without a program, the next who asks has to make it.
  ~Making() {
    if (!ours_) return;
    {
      std::lock_guard lock(cache_.mutex_);
      if (found_)
        table_[key_] = found_;
      else
        table_.erase(key_);
    }
    cache_.made_.notify_all();
  }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

  const std::shared_ptr<const LoadedProgram>& found() const { return found_; }
  void set(std::shared_ptr<const LoadedProgram> program) { found_ = std::move(program); }

 private:
  ProgramCache& cache_;
  Programs& table_;
  Fingerprint key_;
  bool ours_ = false;
  std::shared_ptr<const LoadedProgram> found_;
};

std::shared_ptr<const LoadedProgram> ProgramCache::get(const pjrt::Client& client,
                                                       const Program& program,
                                                       SourceLocation where) {
  Making entry(*this, by_graph_, graph_key(program));
  if (entry.found())
    internal::count(internal::counters().cache_hits);
  else
    entry.set(make(client, program, where));
  return entry.found();
}

std::shared_ptr<const LoadedProgram> ProgramCache::make(const pjrt::Client& client,
                                                        const Program& program,
                                                        SourceLocation where) {
  LoweredModule lowered = lower_recorded(program, where);
  if (lowered.mesh)  // before the compiler is asked, and with the user's line
    for (std::int64_t id : lowered.mesh->device_ids()) device_of(client, id, where);
  Making entry(*this, by_text_, fingerprint(lowered.text));
  const auto& same_text = entry.found();
  Result<std::shared_ptr<const LoadedProgram>> loaded =
      Error(ErrorCode::kUnknown, "");  // replaced below
  if (same_text && lowered.mesh && same_logical_mesh(same_text->lowered(), lowered))
    loaded = retarget(client, *same_text, lowered, where);
  if (!loaded.ok()) loaded = load_program(client, std::move(lowered), where);
  if (!loaded.ok()) throw loaded.error().at(where);
  if (!same_text) entry.set(*loaded);
  return *std::move(loaded);
}

}  // namespace meshard
