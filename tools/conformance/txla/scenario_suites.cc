// virtual_device.json, behaviors.json, patterns_full_mesh.json: scenarios with the state after each
// step.
#include "tools/conformance/suite.h"
#include "tools/conformance/txla/rules.h"
#include "tools/conformance/txla/scenario/judge.h"
#include "tools/conformance/txla/scenario/run.h"

namespace meshard::conformance {
namespace scenario_cases {

Json answer_to(const Json& input, const GoldenFile&) {
  Scope scope;
  Json results = run_steps(scope, input.at("steps"));
  if (results.is_null()) return {};
  return {{"expect", {{"steps", std::move(results)}}}};
}

/// A case that crashed the reference's process has no recorded steps.
Verdict judge_case(const Json& test, const Json& answer) {
  const Json& ours = answer.at("expect").at("steps");
  if (test.contains("expect"))
    return judge_steps(test.at("input").at("steps"), test.at("expect").at("steps"), ours);
  if (no_abort(test.at("expect_error"), {})) return Verdict::by(Rule::kNoAbort);
  const Json& category = test.at("expect_error").at("category");
  for (const Json& step : ours)
    if (step.at("ok") == false && step.at("error").at("category") == category) return {};
  return Verdict::failed("ours has no error " + category.dump());
}

Suite suite_of(std::string_view file) {
  return {file, answer_to, judge_case,
          [](const Json& input) { return input.at("num_devices").get<int>(); }};
}

}  // namespace scenario_cases

Suite virtual_device_suite() { return scenario_cases::suite_of("virtual_device.json"); }
Suite behaviors_suite() { return scenario_cases::suite_of("behaviors.json"); }
Suite patterns_full_mesh_suite() { return scenario_cases::suite_of("patterns_full_mesh.json"); }

}  // namespace meshard::conformance
