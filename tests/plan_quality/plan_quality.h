// The programs of tests/golden/plan, and what a search finds for them.
#pragma once
#include <string>
#include <vector>

#include "meshard/plan/plan.h"

namespace meshard {

/// The module of a program, with all arguments free. @error throws: the file cannot be read
ModulePlan plan_of_program(const std::string& folder, const std::string& name,
                           const std::string& topology, bool use_cache);

/// What compiling a candidate shows, as a search sees it; refused if it does not compile.
PlanVerdict verdict_of_candidate(const PlanProblem& problem, const PlanCandidate& candidate);
PlanVerdict verdict_of_given(const PlanProblem& problem);

/// Every mesh with the given specs, and with each spec of one value in place of the given one, as
/// far as they divide; each once.
std::vector<PlanCandidate> single_changes(const PlanProblem& problem);

}  // namespace meshard
