// Judges what the steps of a scenario did.
#pragma once
#include "tools/conformance/suite.h"

namespace meshard::conformance {

/// @param steps of the case's input
/// @param recorded, ours what each step did, as run_steps says it
Verdict judge_steps(const Json& steps, const Json& recorded, const Json& ours);

}  // namespace meshard::conformance
