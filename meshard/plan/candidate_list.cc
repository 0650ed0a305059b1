// Tested in meshard/plan/search_test.cc.
#include "meshard/plan/candidate_list.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

void check_axes(const PlanProblem& problem) {
  if (problem.axes.empty()) throw_invalid({}, "[plan] no mesh axes are specified");
  std::set<std::string> seen;
  for (const std::string& axis : problem.axes) {
    if (!is_axis_name(axis))
      throw_invalid({}, "[plan] invalid axis name `", axis,
                    "`: use letters, digits and _, and do not begin with a digit");
    if (!seen.insert(axis).second) throw_invalid({}, "[plan] axis `", axis, "` is listed twice");
  }
  for (const auto& [axis, size] : problem.pinned) {
    if (!seen.count(axis))
      throw_invalid({}, "[plan] axis `", axis,
                    "` has a pinned size, but is not one of the mesh axes");
    if (size < 1 || problem.devices % size != 0)
      throw_invalid({}, "[plan] axis `", axis, "` of size ", size, " does not divide ",
                    problem.devices, " devices");
  }
}

using SpecLists = std::vector<std::vector<PartitionSpec>>;

double combinations(const SpecLists& lists) {
  double product = 1;
  for (const std::vector<PartitionSpec>& list : lists) product *= static_cast<double>(list.size());
  return product;
}

std::vector<PlannedCandidate> all_of(const PlanProblem& problem, const std::vector<MeshAxis>& axes,
                                     const SpecLists& lists) {
  std::vector<PlannedCandidate> out;
  if (combinations(lists) == 0) return out;
  std::vector<std::size_t> digits(lists.size(), 0);
  while (true) {
    PlannedCandidate one;
    one.candidate.axes = axes;
    for (std::size_t i = 0; i < lists.size(); ++i)
      one.candidate.specs.push_back(lists[i][digits[i]]);
    one.estimate = estimate_of(problem, one.candidate);
    out.push_back(std::move(one));
    std::size_t d = lists.size();
    while (d > 0 && ++digits[d - 1] == lists[d - 1].size()) digits[--d] = 0;
    if (d == 0) return out;
  }
}

bool before(const PlannedCandidate& a, const PlannedCandidate& b) {
  return more_promising(a.estimate, b.estimate);
}

// Beam search: specs are chosen value by value, largest first, while the others have their first
// spec. Only the `most` best candidates are kept.
std::vector<PlannedCandidate> most_promising_of(const PlanProblem& problem,
                                                const std::vector<MeshAxis>& axes,
                                                const SpecLists& lists, std::size_t most) {
  std::vector<std::size_t> order(lists.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return problem.values[a].type.bytes() > problem.values[b].type.bytes();
  });
  PlannedCandidate first;
  first.candidate.axes = axes;
  for (const std::vector<PartitionSpec>& list : lists) {
    if (list.empty()) return {};
    first.candidate.specs.push_back(list.front());
  }
  std::vector<PlannedCandidate> beam = {first};
  for (std::size_t value : order) {
    std::vector<PlannedCandidate> grown;
    for (const PlannedCandidate& one : beam)
      for (const PartitionSpec& spec : lists[value]) {
        grown.push_back(one);
        grown.back().candidate.specs[value] = spec;
        grown.back().estimate = estimate_of(problem, grown.back().candidate);
      }
    std::stable_sort(grown.begin(), grown.end(), before);
    if (grown.size() > most) grown.resize(most);
    beam = std::move(grown);
  }
  return beam;
}

// How many candidates can be estimated in a tenth of the time limit.
std::size_t affordable(const PlanProblem& problem, const PlanOptions& options,
                       const std::vector<std::vector<MeshAxis>>& meshes) {
  using Clock = std::chrono::steady_clock;
  if (meshes.empty() || !problem.estimate) return options.most_candidates;
  PlanCandidate one{.axes = meshes[meshes.size() / 2], .specs = {}};
  for (const FreeValue& value : problem.values) {
    std::vector<PartitionSpec> specs = spec_candidates(value, one.axes);
    if (specs.empty()) return options.most_candidates;
    one.specs.push_back(specs.back());
  }
  Clock::time_point begun = Clock::now();
  (void)estimate_of(problem, one);
  std::chrono::duration<double> each = Clock::now() - begun;
  double count = options.time_limit / 10 / each;
  constexpr double kLeast = 64;
  return count >= static_cast<double>(options.most_candidates)
             ? options.most_candidates
             : std::min(options.most_candidates, static_cast<std::size_t>(std::max(count, kLeast)));
}

}  // namespace

PlanEstimate estimate_of(const PlanProblem& problem, const PlanCandidate& candidate) {
  if (problem.estimate) return problem.estimate(candidate);
  PlanEstimate estimate;
  for (std::size_t i = 0; i < candidate.specs.size(); ++i)
    estimate.least_memory +=
        shard_bytes(candidate.specs[i], problem.values[i].type, candidate.axes);
  return estimate;
}

bool more_promising(const PlanEstimate& a, const PlanEstimate& b) {
  if (a.seconds != b.seconds) return a.seconds < b.seconds;
  if (a.communication != b.communication) return a.communication < b.communication;
  return a.least_memory < b.least_memory;
}

std::vector<std::vector<MeshAxis>> meshes_of(const PlanProblem& problem) {
  check_axes(problem);
  std::vector<std::vector<MeshAxis>> meshes;
  for (const std::vector<std::int64_t>& sizes : mesh_shapes(problem.devices, problem.axes.size())) {
    std::vector<MeshAxis> axes;
    bool wanted = true;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      auto pin = problem.pinned.find(problem.axes[i]);
      wanted = wanted && (pin == problem.pinned.end() || pin->second == sizes[i]);
      axes.push_back({.name = problem.axes[i], .size = sizes[i]});
    }
    if (wanted && (!problem.suits || problem.suits(axes))) meshes.push_back(std::move(axes));
  }
  return meshes;
}

std::vector<PlannedCandidate> plan_candidates(const PlanProblem& problem,
                                              const PlanOptions& options, bool& complete) {
  std::vector<PlannedCandidate> out;
  std::vector<std::vector<MeshAxis>> meshes = meshes_of(problem);
  std::size_t share =
      affordable(problem, options, meshes) / std::max<std::size_t>(meshes.size(), 1);
  share = std::max<std::size_t>(share, 1);
  complete = true;
  for (const std::vector<MeshAxis>& axes : meshes) {
    SpecLists lists;
    for (const FreeValue& value : problem.values) lists.push_back(spec_candidates(value, axes));
    bool few = combinations(lists) <= static_cast<double>(share);
    complete = complete && few;
    // A beam calls the estimate for each of its entries and each spec.
    std::size_t specs = 1;
    for (const std::vector<PartitionSpec>& list : lists) specs += list.size();
    std::size_t width = std::clamp<std::size_t>(share / specs, 1, std::min<std::size_t>(share, 64));
    std::vector<PlannedCandidate> found =
        few ? all_of(problem, axes, lists) : most_promising_of(problem, axes, lists, width);
    for (PlannedCandidate& one : found) out.push_back(std::move(one));
  }
  std::stable_sort(out.begin(), out.end(), before);
  return out;
}

}  // namespace meshard
