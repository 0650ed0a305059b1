#include "meshard/runtime/loaded_program.h"

#include <unordered_map>

#include "meshard/graph/leaf.h"
#include "meshard/runtime/counters.h"
#include "meshard/runtime/internal/event_recorder.h"
#include "meshard/runtime/internal/wait_at_exit.h"

namespace meshard {
namespace {

// A program has few different shardings; a search among more would cost more than it saves.
constexpr std::size_t kMostKnownShardings = 64;

}  // namespace

LoadedProgram::LoadedProgram(const Platforms& platforms, pjrt::Client client, LoweredModule lowered,
                             std::optional<pjrt::LoadedExecutable> executable,
                             ChosenShardings chosen, std::vector<std::uint32_t> donated)
    : platforms_(platforms),
      client_(std::move(client)),
      lowered_(std::move(lowered)),
      executable_(std::move(executable)),
      chosen_(std::move(chosen)),
      donated_(std::move(donated)) {
  if (executable_) {
    const std::vector<int>& own = executable_->signature().donated;
    donated_.assign(own.begin(), own.end());
  }
  order_results();
  share_equal_shardings();
}

// The program returns the shards of this process in the order of the numbering; they are stored in
// the order of the sharding's mesh.
void LoadedProgram::order_results() {
  for (const auto& sharding : chosen_.results) {
    ResultOrder& order = result_orders_.emplace_back();
    if (!executable_ || !sharding || sharding->mesh().rank_map() == lowered_.mesh->rank_map())
      continue;
    std::vector<const pjrt::Device*> devices;
    for (std::int64_t id : sharding->mesh().device_ids())
      if (const pjrt::Device* device = client_.find_device(id); device->addressable())
        devices.push_back(device);
    order.devices = &client_.device_list(devices);
    order.positions = executable_->device_list().positions_of(*order.devices).value();
  }
}

Error LoadedProgram::elsewhere() const {
  return Error(ErrorCode::kFailedPrecondition,
               cat("[runtime] the program \"", lowered_.name,
                   "\" runs in other processes only, on the devices of ", *lowered_.mesh));
}

void LoadedProgram::fail_elsewhere() const { throw elsewhere(); }

void LoadedProgram::share_equal_shardings() {
  written_ = chosen_.arguments;
  std::vector<Sharding> known;
  auto share = [&](std::optional<Sharding>& sharding) {
    if (!sharding) return;
    for (const Sharding& each : known)
      if (each == *sharding) {
        sharding = each;
        return;
      }
    if (known.size() < kMostKnownShardings) known.push_back(*sharding);
  };
  for (auto& sharding : chosen_.arguments) share(sharding);
  for (auto& sharding : chosen_.results) share(sharding);
  share_equal_types();
}

void LoadedProgram::share_equal_types() {
  std::unordered_multimap<std::size_t, ShardedType> known;
  auto shared = [&](const TensorType& type, const std::optional<Sharding>& sharding) {
    auto [begin, end] = known.equal_range(type.hash());
    for (auto each = begin; each != end; ++each)
      if (each->second.type() == type && same_sharding(each->second.sharding(), sharding))
        return each->second;
    return known.emplace(type.hash(), ShardedType(type, sharding))->second;
  };
  for (std::size_t i = 0; i < chosen_.arguments.size(); ++i)
    argument_types_.push_back(shared(lowered_.arguments[i].type, chosen_.arguments[i]));
  for (std::size_t i = 0; i < chosen_.results.size(); ++i)
    result_types_.push_back(shared(lowered_.results[i].type, chosen_.results[i]));
}

Result<pjrt::Launch> LoadedProgram::launch_recorded(
    FunctionRef<Result<pjrt::Launch>(const pjrt::LaunchOptions&)> recorded,
    const pjrt::LaunchOptions& options) const {
  internal::HostSpan span;
  span.begin("launch", lowered_.name, options.where);
  internal::TraceClock::time_point start = internal::TraceClock::now();
  Result<pjrt::Launch> launched = recorded({.where = options.where, .id = options.id});
  if (launched.ok())
    internal::record_executions(*launched, executable_->devices(), lowered_.name, options.where,
                                start);
  return launched;
}

Result<pjrt::Launch> LoadedProgram::skip(Arrays arguments, std::span<Tensor> results,
                                         SourceLocation where) const {
  for (const DeviceArray* argument : arguments)
    if (!argument->is_live())
      return Error(ErrorCode::kFailedPrecondition, "[runtime] an argument is gone");
  for (std::uint32_t i : donated_) arguments[i]->set_donated_at(where);
  std::vector<pjrt::BufferList> empty(results.size());
  take_results(empty, results, where);
  return pjrt::Launch();
}

Result<void> LoadedProgram::launch_on_views(std::span<const pjrt::BufferView> arguments,
                                            std::span<pjrt::Buffer> results,
                                            SourceLocation where) const {
  const bool recorded = internal::records_events();
  std::unique_lock<std::mutex> checking;
  if (lowered_.nan_checks) [[unlikely]]
    checking = lowered_.nan_checks->begin();
  internal::HostSpan span;
  if (recorded) span.begin("launch", lowered_.name, where);
  const internal::TraceClock::time_point start = internal::TraceClock::now();
  MESHARD_ASSIGN_OR_RETURN(pjrt::Launch launch,
                           ends_.ask({.track = recorded || lowered_.nan_checks, .where = where},
                                     [&](const pjrt::LaunchOptions& options) {
                                       return executable_->execute_on_views(arguments, results,
                                                                            options);
                                     }));
  if (recorded)
    internal::record_executions(launch, executable_->devices(), lowered_.name, where, start);
  internal::wait_at_exit(internal::count(internal::counters().launches));
  if (lowered_.nan_checks && launch.await().ok()) [[unlikely]]
    internal::throw_found_nan(lowered_, where);
  return {};
}

void LoadedProgram::take_results(std::span<pjrt::BufferList> made, std::span<Tensor> results,
                                 SourceLocation where) const {
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (const ResultOrder& order = result_orders_[i]; order.devices)
      made[i].reorder(*order.devices, order.positions);
    const ShardedType& type = result_types_[i];
    results[i] = make_array(type.type(),
                            make_storage<DeviceArray>(platforms_, type, std::move(made[i])), where);
  }
}

Result<void> LoadedProgram::look_at_whole(
    const std::function<Result<void>(const pjrt::LoadedExecutable&)>& look) const {
  if (!executable_) return elsewhere();
  return look(*executable_);
}

ProgramView view_of(const CompiledProgram& program) {
  internal_check(program.loaded() != nullptr, "[runtime] a program of another evaluator");
  const Program& source = program.source();
  return {*program.loaded(), source.graph, source.parameter_names, source.donated};
}

}  // namespace meshard
