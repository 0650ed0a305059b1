// The comparison shared by the layout files.
#pragma once
#include <functional>

#include "tools/conformance/devicemesh/layout_json.h"
#include "tools/conformance/suite.h"

namespace meshard::conformance {

/// The operands of a case's composition, and the recorded result: for the rule exact-composition.
struct Composed {
  Layout left;
  Layout right;
  std::vector<std::int64_t> recorded;  // the values
};

/// Passes if the answer is the recorded value, or both are errors. A case tagged `quirk` may differ
/// by the rule quirk. If we report an error and `composed` returns operands, the case may differ by
/// exact-composition.
Verdict judge_layout_case(
    const Json& test, const Json& answer,
    const std::function<std::vector<Composed>(const Json& test)>& composed = {});

}  // namespace meshard::conformance
