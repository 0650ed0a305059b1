// Decides whether an answer to a case of calls_*.json is close enough to the recorded one.
#pragma once
#include "tools/conformance/suite.h"

namespace meshard::conformance {

/// Compares each part of our answer with the recorded one.
Verdict judge_call_case(const Json& test, const Json& answer);

}  // namespace meshard::conformance
