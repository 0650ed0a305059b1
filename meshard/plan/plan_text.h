// The result of a search as text.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "meshard/plan/search.h"

namespace meshard {

/// `fits, 3 GiB of 15.7 GiB, 1.2 ms, 20 MiB in collectives`
std::string verdict_text(const PlanVerdict& verdict);

/// `as given: data=2,model=4; w: P("data", none)`; without `as given: ` for other candidates.
/// @param names of the free values
std::string title_of(const PlannedCandidate& planned, const std::vector<std::string>& names);

/// The result as JSON: an object with `schema` "meshard.plan", `version` 1, the counts, and
/// `candidates`, best first. Each has its axes, its specs by the names of `values`, its estimate
/// and verdict, whether it is the given program, and whether it is on the Pareto front of time and
/// memory. Times are in seconds, 0 if unknown; memory is in bytes.
/// @param values those of the problem
/// @param indent spaces per nesting level; 0: everything on one line
std::string to_json(const PlanResult& result, const std::vector<FreeValue>& values,
                    std::size_t indent = 0);

}  // namespace meshard
