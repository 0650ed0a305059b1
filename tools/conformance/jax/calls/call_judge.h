// Decides whether an answer to a case of calls_*.json is close enough to the recorded one.
#pragma once
#include "tools/conformance/suite.h"

namespace meshard::conformance {

/// Compares each part of our answer with the recorded one.
Verdict judge_call_case(const Json& test, const Json& answer);

/// Sets how many rounding errors of a result's dtype any algorithm may make: more where a platform
/// computes products with fewer bits. False if `dtype` is not a
/// float, or `roundings` is negative or NaN.
bool set_roundings(const std::string& dtype, double roundings);

}  // namespace meshard::conformance
