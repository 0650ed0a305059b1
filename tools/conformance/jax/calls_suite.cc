// calls_*.json: random calls, their derivatives, and what they are wrapped in.
#include "tools/conformance/jax/calls/call_judge.h"
#include "tools/conformance/jax/calls/case_run.h"
#include "tools/conformance/suite.h"

namespace meshard::conformance {
namespace calls_cases {

Json answer_to(const Json& test, const GoldenFile&) {
  try {
    return run_call_case(test);
  } catch (const Unreadable&) {
    return {};
  }
}

// Meshes use some of eight devices.
int devices_for(const Json& test) { return test.contains("mesh") ? 8 : 1; }

}  // namespace calls_cases

Suite calls_suite() {
  using namespace calls_cases;
  return {"calls_*.json", answer_to, judge_call_case, devices_for};
}

}  // namespace meshard::conformance
