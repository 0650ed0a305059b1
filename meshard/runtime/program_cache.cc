#include "meshard/runtime/program_cache.h"

#include "meshard/runtime/counters.h"
#include "meshard/runtime/placement.h"

namespace meshard {
namespace {

Fingerprint graph_key(const Program& program) {
  Fingerprint graph = program.graph.fingerprint();
  std::string key = cat(graph, ";", program.name, ";");
  for (std::uint32_t donated : program.donated) append(key, cat(donated, ","));
  return fingerprint(key);
}

// The same mesh, seen by the compiler: logical devices in place of ids.
bool same_logical_mesh(const LoweredModule& a, const LoweredModule& b) {
  if (!a.mesh || !b.mesh) return !a.mesh && !b.mesh;
  return std::equal(a.mesh->axes().begin(), a.mesh->axes().end(), b.mesh->axes().begin(),
                    b.mesh->axes().end());
}

// `known`'s executable, loaded for the devices of `lowered`. The plugin compiles nothing.
Result<std::shared_ptr<const LoadedProgram>> retarget(const pjrt::Client& client,
                                                      const LoadedProgram& known,
                                                      LoweredModule lowered) {
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

std::shared_ptr<const LoadedProgram> ProgramCache::get(const pjrt::Client& client,
                                                       const Program& program,
                                                       SourceLocation where) {
  std::lock_guard lock(mutex_);
  Fingerprint key = graph_key(program);
  if (auto found = by_graph_.find(key); found != by_graph_.end()) {
    internal::count(internal::counters().cache_hits);
    return found->second;
  }
  LoweredModule lowered = lower(program);
  if (lowered.mesh)  // before the compiler is asked, and with the user's line
    for (std::int64_t id : lowered.mesh->device_ids()) device_of(client, id, where);
  Fingerprint text_key = fingerprint(lowered.text);
  auto same_text = by_text_.find(text_key);
  Result<std::shared_ptr<const LoadedProgram>> loaded =
      Error(ErrorCode::kUnknown, "");  // replaced below
  bool known =
      same_text != by_text_.end() && same_logical_mesh(same_text->second->lowered(), lowered);
  if (known && lowered.mesh) loaded = retarget(client, *same_text->second, lowered);
  if (!loaded.ok()) loaded = load_program(client, std::move(lowered));
  if (!loaded.ok()) throw loaded.error().at(where);
  by_graph_[key] = *loaded;
  by_text_.try_emplace(text_key, *loaded);
  return *std::move(loaded);
}

}  // namespace meshard
