// Judges the results of a scenario's steps.
#pragma once
#include "tools/conformance/suite.h"

namespace meshard::conformance {

/// @param steps of the case's input
/// @param recorded, ours the result of each step, in the form of run_steps
Verdict judge_steps(const Json& steps, const Json& recorded, const Json& ours);

}  // namespace meshard::conformance
