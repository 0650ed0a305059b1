// Tested in meshard/runtime/imported_program_test.cc.
// Calls of imported programs in functions that are recorded.
#include <algorithm>
#include <set>

#include "meshard/base/cat.h"
#include "meshard/graph/record.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/lowering/module_boundary.h"
#include "meshard/ops/composite/create.h"
#include "meshard/ops/identity.h"
#include "meshard/runtime/internal/imported_state.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/stablehlo/compiler_text.h"
#include "meshard/stablehlo/module_as_text.h"

namespace meshard {
namespace {

// The mesh of the first tensor that has one of this size.
std::optional<Mesh> mesh_of_arguments(std::span<const Tensor> given, std::int64_t size) {
  for (const Tensor& tensor : given) {
    if (!tensor.defined()) continue;
    std::optional<Sharding> sharding = specified_sharding(tensor);
    if (sharding && sharding->mesh().size() == size) return sharding->mesh();
  }
  return std::nullopt;
}

std::vector<std::optional<Sharding>> shardings_of(const std::vector<LoweredValue>& values) {
  std::vector<std::optional<Sharding>> shardings;
  for (const LoweredValue& value : values)
    shardings.push_back(value.sharding ? std::optional(value.sharding->with_unreduced({}))
                                       : std::nullopt);
  return shardings;
}

// Whether a module depends on the order of its devices.
bool has_device_order(const std::string& text) {
  for (std::string_view op :
       {"sdy.manual_computation", "partition_id", "all_gather", "all_reduce", "all_to_all",
        "collective_", "reduce_scatter", "SPMDFullToShardShape"})
    if (text.find(op) != std::string::npos) return true;
  return false;
}

}  // namespace

std::vector<std::size_t> ImportedProgram::State::operands() const {
  std::set<std::size_t> needed(kept.begin(), kept.end());
  if (vjp)
    for (std::size_t i : vjp->operands())
      if (i < arguments.size()) needed.insert(i);
  return {needed.begin(), needed.end()};
}

// The derivative takes the arguments, then the cotangents of the results.
ImportedBody::Pullback ImportedProgram::State::pullback_on(const Place& place,
                                                           SourceLocation where) const {
  if (!vjp) return {};
  return
      [derivative = vjp, needed = operands(), count = arguments.size(), there = Place{place.mesh},
       where](std::span<const Tensor> passed, std::span<const Tensor> cotangents) {
        std::vector<Tensor> given(derivative->arguments.size());
        for (std::size_t k = 0; k < needed.size(); ++k) given[needed[k]] = passed[k];
        for (std::size_t i = 0; i < cotangents.size() && count + i < given.size(); ++i) {
          const std::optional<TensorType>& type = derivative->arguments[count + i].type;
          given[count + i] = cotangents[i];
          // Of results that are not floating-point numbers, cotangents are bools without a meaning.
          if (type && (!cotangents[i].defined() || !is_inexact(type->dtype)))
            given[count + i] = zeros(type->shape, type->dtype);
        }
        std::vector<Tensor> found = derivative->record(there, given, where);
        std::vector<Tensor> wanted(needed.size());
        for (std::size_t k = 0; k < needed.size(); ++k)
          if (needed[k] < found.size() && found[needed[k]].type() == passed[k].type())
            wanted[k] = found[needed[k]];
        return wanted;
      };
}

std::shared_ptr<const ImportedProgram::State::Recorded> ImportedProgram::State::recorded_on(
    const Place& place, SourceLocation where) const {
  {
    std::lock_guard lock(mutex);
    for (const auto& known : recorded)
      if (known->place == place) return known;
  }
  Runtime& runtime = process_runtime();
  const pjrt::Client& client =
      place.mesh ? runtime.platforms.client(*place.mesh, where) : runtime.platforms.client(where);
  const auto refuse = [&](std::string_view why) {
    return Error(ErrorCode::kUnimplemented,
                 cat("[load_program] \"", name, "\" cannot be a part of a recorded program: ", why,
                     ". Call it between such programs"),
                 where);
  };
  if (!facts.is_for_shardy())
    throw refuse("it was exported for the older partitioner (jax_use_shardy_partitioner)");
  for (const auto* values : {&arguments, &results})
    for (const ImportedValue& value : *values)
      if (!value.memory_kind.empty() && value.memory_kind != "device")
        throw refuse(cat("it has a value in the memory ", value.memory_kind));
  // The shardings of arguments are those of the call.
  LoweredModule lowered = lowered_on(client, {place.mesh}, where);
  ImportedBody body{.name = name, .text = stablehlo::module_as_text(lowered.text).value(where)};
  body.devices = devices;
  body.has_device_order = has_device_order(body.text);
  if (has_platform_number())
    body.platform_number = static_cast<std::int32_t>(platform_number(client, where));
  if (place.mesh)
    for (const stablehlo::ModuleMesh& own : facts.meshes)
      if (std::optional<Mesh> placed = mesh_on(own, *lowered.mesh))
        body.meshes.emplace_back(own.name, *std::move(placed));
  std::vector<std::size_t> needed = operands();
  for (std::size_t i : kept)
    body.taken.push_back(
        static_cast<std::size_t>(std::distance(needed.begin(), std::ranges::find(needed, i))));
  for (const LoweredValue& result : lowered.results) body.results.push_back(result.type);
  body.pullback = pullback_on(place, where);
  auto made = std::make_shared<Recorded>();
  made->place = place;
  made->body = std::make_shared<const ImportedBody>(std::move(body));
  made->arguments = shardings_of(lowered.arguments);
  for (std::size_t k = 0; k < kept.size() && !place.shardings.empty(); ++k)
    if (const auto& chosen = place.shardings[kept[k]]) made->arguments[position(k)] = chosen;
  made->results = shardings_of(lowered.results);
  std::lock_guard lock(mutex);
  recorded.push_back(made);
  return made;
}

std::vector<Tensor> ImportedProgram::State::record(const Place& place,
                                                   std::span<const Tensor> given,
                                                   SourceLocation where) const {
  if (internal::recorder().manual != nullptr)
    throw Error(ErrorCode::kFailedPrecondition,
                cat("[load_program] \"", name,
                    "\" is called in a function that manual() records, where each device has its "
                    "own values: a loaded program takes whole ones. Call it outside"),
                where);
  SourceScope line(where);
  process_runtime().platforms.know_default(where);
  Place there = place;
  if (!there.mesh && devices > 1) {
    there.mesh = mesh_of_arguments(given, devices);
    if (!there.mesh) there.mesh = first_devices(where);
    if (!there.mesh->is_base()) there.mesh = there.mesh->as_root(where);
  }
  std::shared_ptr<const Recorded> known = recorded_on(there, where);
  std::vector<Tensor> passed;
  for (std::size_t i : operands()) {
    auto at = std::ranges::find(kept, i);
    passed.push_back(given[i]);
    if (at == kept.end()) continue;
    const auto& sharding = known->arguments[position(static_cast<std::size_t>(at - kept.begin()))];
    if (sharding) passed.back() = sharding_constraint(passed.back(), *sharding);
  }
  std::vector<Tensor> returned = record_imported_call(known->body, passed, where);
  for (std::size_t i = 0; i < returned.size(); ++i)
    if (known->results[i]) returned[i] = sharding_constraint(returned[i], *known->results[i]);
  return returned;
}

}  // namespace meshard
