// The comparison that the layout files share.
#pragma once
#include <functional>

#include "tools/conformance/devicemesh/layout_json.h"
#include "tools/conformance/suite.h"

namespace meshard::conformance {

/// What a composition-like case composed, and the recorded answer: for the rule exact-composition.
struct Composed {
  Layout left;
  Layout right;
  std::vector<std::int64_t> recorded;  // the values
};

/// Fails, or does not, as recorded, with the same answer. A case tagged `quirk` may differ by that
/// rule; one for which `composed` has something to say, and to which we answer with an error, by
/// exact-composition.
Verdict judge_layout_case(
    const Json& test, const Json& answer,
    const std::function<std::vector<Composed>(const Json& test)>& composed = {});

}  // namespace meshard::conformance
