#include "meshard/plan/candidate_pool.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <utility>

#include "meshard/explain/module_layout.h"

namespace meshard {
namespace {

// What the time is measured in where the hardware's figures are unknown: bytes moved. One is added,
// so that the logarithm exists.
double cost_of(double seconds, double bytes) { return seconds > 0 ? seconds : bytes + 1; }

// The spec without axes of size 1, as spec_candidates() writes it: only the value's own stay.
PartitionSpec without_unit_axes(const PartitionSpec& spec, const FreeValue& value,
                                const std::vector<MeshAxis>& axes) {
  std::vector<DimensionSpec> dimensions;
  for (std::size_t d = 0; d < spec.size(); ++d) {
    AxisList kept;
    for (const AxisRef& ref : spec[d].axes()) {
      bool is_unit = std::ranges::any_of(
          axes, [&](const MeshAxis& axis) { return axis.name == ref.name && axis.size == 1; });
      const AxisList& own = value.spec[d].axes();
      if (!is_unit || std::ranges::find(own, ref) != own.end()) kept.push_back(ref);
    }
    dimensions.emplace_back(std::move(kept), spec[d].is_open());
  }
  return PartitionSpec(std::move(dimensions));
}

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
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
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
    std::ranges::stable_sort(grown, before);
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

int CandidatePool::feature(const std::string& text) {
  return feature_numbers_.emplace(text, static_cast<int>(feature_numbers_.size())).first->second;
}

int CandidatePool::distance(const std::vector<int>& a, const std::vector<int>& b) {
  int count = a[0] == b[0] ? 0 : 2;
  for (std::size_t i = 1; i < a.size(); ++i) count += a[i] == b[i] ? 0 : 1;
  return count;
}

bool CandidatePool::are_neighbors(const std::vector<int>& a, const std::vector<int>& b) {
  int specs = 0;
  for (std::size_t i = 1; i < a.size(); ++i) specs += a[i] == b[i] ? 0 : 1;
  return a[0] == b[0] ? specs == 1 : specs == 0;
}

std::size_t CandidatePool::add(PlannedCandidate one) {
  // A given program that no candidate is like has a text of its own.
  bool is_apart = one.as_given && !problem_.given_is_candidate;
  std::string text = is_apart ? "as given" : one.candidate.to_string();
  auto [place, is_new] = numbers_.try_emplace(std::move(text), entries_.size());
  if (!is_new) return place->second;
  Entry entry;
  entry.features.push_back(feature(axes_text(one.candidate.axes)));
  for (const PartitionSpec& spec : one.candidate.specs)
    entry.features.push_back(feature(spec.to_string()));
  entry.planned = std::move(one);
  entries_.push_back(std::move(entry));
  ++waiting_;
  return entries_.size() - 1;
}

std::vector<std::size_t> CandidatePool::add_neighbors(
    std::size_t number, const std::vector<std::vector<MeshAxis>>& meshes) {
  const PlanCandidate center = entries_[number].planned.candidate;
  std::vector<std::size_t> added;
  if (is_open(center)) return added;
  auto add_new = [&](PlanCandidate candidate) {
    if (find(candidate)) return;
    PlanEstimate estimate = estimate_of(problem_, candidate);
    added.push_back(add({.candidate = std::move(candidate), .estimate = estimate}));
  };
  for (const std::vector<MeshAxis>& axes : meshes) {
    if (axes == center.axes) {
      for (std::size_t v = 0; v < center.specs.size(); ++v)
        for (PartitionSpec& spec : spec_candidates(problem_.values[v], axes)) {
          PlanCandidate changed = center;
          changed.specs[v] = std::move(spec);
          add_new(std::move(changed));
        }
      continue;
    }
    PlanCandidate moved{.axes = axes, .specs = {}};
    bool all_divide = true;
    for (std::size_t v = 0; v < center.specs.size(); ++v) {
      const FreeValue& value = problem_.values[v];
      moved.specs.push_back(without_unit_axes(center.specs[v], value, axes));
      all_divide = all_divide && divides(moved.specs[v], value.type.shape, axes);
    }
    if (all_divide) add_new(std::move(moved));
  }
  return added;
}

std::optional<std::size_t> CandidatePool::find(const PlanCandidate& candidate) const {
  auto found = numbers_.find(candidate.to_string());
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

void CandidatePool::stop_waiting(std::size_t number) {
  if (!entries_[number].waits) return;
  entries_[number].waits = false;
  --waiting_;
}

void CandidatePool::leave_out(std::size_t number) { stop_waiting(number); }

void CandidatePool::judged(std::size_t number, const PlanVerdict& verdict) {
  stop_waiting(number);
  if (verdict.outcome == PlanOutcome::kRefused) return;
  const PlanEstimate& estimate = entries_[number].planned.estimate;
  // Without a report, for example because it does not fit, the estimate cannot be compared.
  if (verdict.memory == 0 || (verdict.seconds > 0) != (estimate.seconds > 0)) return;
  double ratio = cost_of(verdict.seconds, static_cast<double>(verdict.collective_bytes)) /
                 cost_of(estimate.seconds, estimate.communication);
  errors_.push_back({number, std::log(ratio)});
}

double CandidatePool::corrected(const Entry& entry) const {
  const PlanEstimate& estimate = entry.planned.estimate;
  double cost = std::log(cost_of(estimate.seconds, estimate.communication));
  // The mean of all errors has the weight of two candidates at distance 2.
  constexpr double kMeanWeight = 0.125;
  double all = 0, sum = 0, weights = 0;
  for (const Error& error : errors_) {
    double weight = std::ldexp(1, -2 * distance(entry.features, entries_[error.entry].features));
    sum += weight * error.log_ratio;
    weights += weight;
    all += error.log_ratio;
  }
  if (errors_.empty()) return cost;
  sum += kMeanWeight * all / static_cast<double>(errors_.size());
  return cost + sum / (weights + kMeanWeight);
}

template <class Accept>
std::optional<std::size_t> CandidatePool::take_best(const Accept& accept) {
  std::optional<std::size_t> best;
  double least = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!entries_[i].waits || !accept(entries_[i])) continue;
    double cost = corrected(entries_[i]);
    bool is_better = !best || cost < least ||
                     (cost == least && more_promising(entries_[i].planned.estimate,
                                                      entries_[*best].planned.estimate));
    if (!is_better) continue;
    best = i;
    least = cost;
  }
  if (best) stop_waiting(*best);
  return best;
}

std::optional<std::size_t> CandidatePool::take() {
  return take_best([](const Entry&) { return true; });
}

std::optional<std::size_t> CandidatePool::take_neighbor_of(std::size_t center) {
  const std::vector<int> features = entries_[center].features;
  return take_best([&](const Entry& entry) { return are_neighbors(entry.features, features); });
}

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
  std::ranges::stable_sort(out, before);
  return out;
}

}  // namespace meshard
