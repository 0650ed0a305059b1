#include "meshard/plan/candidate_pool.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/plan/candidate_list.h"

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
      bool is_unit = std::any_of(axes.begin(), axes.end(), [&](const MeshAxis& axis) {
        return axis.name == ref.name && axis.size == 1;
      });
      const AxisList& own = value.spec[d].axes();
      if (!is_unit || std::find(own.begin(), own.end(), ref) != own.end()) kept.push_back(ref);
    }
    dimensions.emplace_back(std::move(kept), spec[d].is_open());
  }
  return PartitionSpec(std::move(dimensions));
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
  std::string mesh;
  for (const MeshAxis& axis : one.candidate.axes) append(mesh, cat(axis.name, "=", axis.size, ","));
  entry.features.push_back(feature(mesh));
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

}  // namespace meshard
