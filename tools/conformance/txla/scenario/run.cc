#include "tools/conformance/txla/scenario/run.h"

#include <set>

#include "meshard/runtime/counters.h"
#include "tools/conformance/txla/error_category.h"
#include "tools/conformance/txla/inputs.h"
#include "tools/conformance/txla/scenario/state.h"

namespace meshard::conformance {
namespace {

Step step_named(const std::string& op) {
  for (const Steps* steps :
       {&steps_that_make(), &steps_that_annotate(), &steps_that_change(), &steps_that_read()})
    if (auto found = steps->find(op); found != steps->end()) return found->second;
  throw UnknownStep{};
}

/// The tensors that a step names.
std::set<std::string> names_of(const Json& step) {
  std::set<std::string> names;
  for (const char* field : {"t", "out"})
    if (step.contains(field)) names.insert(step.at(field).get<std::string>());
  if (step.contains("also")) names.insert(step.at("also").begin(), step.at("also").end());
  return names;
}

Json states_of(const Scope& scope, const Json& step) {
  Json states = Json::object();
  for (const std::string& name : names_of(step))
    if (auto found = scope.tensors.find(name); found != scope.tensors.end())
      states[name] = state_of(found->second);
  return states;
}

Json run_step(Scope& scope, const Json& step) {
  RuntimeCounters before = runtime_counters();
  Step run = step_named(step.at("op"));
  Json result = Json::object();
  try {
    result = run(scope, step);
    result["ok"] = true;
  } catch (const Error& error) {
    result = {{"ok", false},
              {"error", {{"category", error_category(error)}, {"message", error.message()}}}};
  }
  result["delta"] = json_of(runtime_counters() - before);
  result["state"] = states_of(scope, step);
  return result;
}

}  // namespace

Tensor& Scope::named(const std::string& name) {
  auto found = tensors.find(name);
  if (found == tensors.end()) throw Error(ErrorCode::kNotFound, "there is no tensor " + name);
  return found->second;
}

Sharding Scope::sharding(const Json& step) const {
  return Sharding(mesh(step), spec_of(step.at("spec"), mesh(step)));
}

Json run_steps(Scope& scope, const Json& steps) {
  Json results = Json::array();
  try {
    for (const Json& step : steps) results.push_back(run_step(scope, step));
  } catch (const UnknownStep&) {
    return {};
  }
  return results;
}

}  // namespace meshard::conformance
