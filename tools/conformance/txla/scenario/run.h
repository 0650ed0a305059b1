// Runs the steps of a scenario, one after the other, on the devices of this process.
#pragma once
#include "tools/conformance/txla/scenario/scope.h"

namespace meshard::conformance {

/// What each step did, as `expect.steps` says it: `ok` or `error`, its results, the `state` of the
/// tensors that it names, and in `delta` the counters that it changed. Null if one is not known.
/// @post `scope` is what the steps made
Json run_steps(Scope& scope, const Json& steps);

}  // namespace meshard::conformance
