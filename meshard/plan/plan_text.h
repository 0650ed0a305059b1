// The result of a search as text.
#pragma once
#include <string>
#include <vector>

#include "meshard/plan/search.h"

namespace meshard {

/// `fits, 3 GiB of 15.7 GiB, 1.2 ms, 20 MiB in collectives`
std::string verdict_text(const PlanVerdict& verdict);

/// `as given: data=2,model=4; w: P("data", none)`; without `as given: ` for other candidates.
/// @param names of the free values
std::string title_of(const PlannedCandidate& planned, const std::vector<std::string>& names);

}  // namespace meshard
