// The meshes, specs and estimates of a search problem.
#pragma once
#include <vector>

#include "meshard/plan/search.h"

namespace meshard {

/// The estimate of a candidate: the problem's, else only the bytes of the free values.
PlanEstimate estimate_of(const PlanProblem& problem, const PlanCandidate& candidate);

/// The meshes that suit a problem, by their axes.
/// @error as plan_candidates(), thrown
std::vector<std::vector<MeshAxis>> meshes_of(const PlanProblem& problem);

/// True if `a` is to be compiled before `b`: it takes less time by its estimate; moves fewer bytes;
/// has fewer bytes of arguments.
bool more_promising(const PlanEstimate& a, const PlanEstimate& b);

}  // namespace meshard
