// Runs the steps of a scenario in order, on the devices of this process.
#pragma once
#include "tools/conformance/txla/scenario/scope.h"

namespace meshard::conformance {

/// The result of each step, in the form of `expect.steps`: `ok` or `error`, its results, the
/// `state` of the tensors that it names, and in `delta` the counters that it changed. Null if a
/// step is unknown.
/// @post `scope` has what the steps made
Json run_steps(Scope& scope, const Json& steps);

}  // namespace meshard::conformance
