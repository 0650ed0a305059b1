#include "meshard/plan/search.h"

#include <algorithm>
#include <set>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/fingerprint.h"
#include "meshard/explain/byte_text.h"
#include "meshard/plan/journal.h"
#include "meshard/report/diff_text.h"

namespace meshard {
namespace {

PlanEstimate estimate_of(const PlanProblem& problem, const PlanCandidate& candidate) {
  if (problem.estimate) return problem.estimate(candidate);
  PlanEstimate estimate;
  for (std::size_t i = 0; i < candidate.specs.size(); ++i)
    estimate.least_memory +=
        shard_bytes(candidate.specs[i], problem.values[i].type, candidate.axes);
  return estimate;
}

bool more_promising(const PlannedCandidate& a, const PlannedCandidate& b) {
  if (a.estimate.communication != b.estimate.communication)
    return a.estimate.communication < b.estimate.communication;
  return a.estimate.least_memory < b.estimate.least_memory;
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
    std::stable_sort(grown.begin(), grown.end(), more_promising);
    if (grown.size() > most) grown.resize(most);
    beam = std::move(grown);
  }
  return beam;
}

Result<PlanVerdict> judged(const PlanProblem& problem, double margin, PlannedCandidate& one) {
  Result<ProgramReport> report = [&]() -> Result<ProgramReport> {
    try {
      return problem.compile(one.candidate);
    } catch (const Error& error) {
      return error;
    }
  }();
  if (report.ok()) {
    one.report = *std::move(report);
    return verdict_of(*one.report, margin);
  }
  const Error& error = report.error();
  // Cancellation by the user is not a verdict on the candidate.
  if (error.code() == ErrorCode::kCancelled) return error;
  PlanVerdict verdict;
  verdict.outcome =
      error.code() == ErrorCode::kResourceExhausted ? PlanOutcome::kTooBig : PlanOutcome::kRefused;
  verdict.capacity = problem.capacity.value_or(0);
  verdict.problem = error.message();
  return verdict;
}

std::string problem_line(const PlanProblem& problem, const PlanOptions& options) {
  std::string text = cat(problem.identity, "\n", problem.devices, "\n", join(problem.axes, ","));
  for (const auto& [axis, size] : problem.pinned) append(text, cat("\n", axis, "=", size));
  for (const FreeValue& value : problem.values)
    append(text, cat("\n", value.name, "\n", value.type, "\n", value.spec));
  append(text, cat("\n", options.margin));
  return fingerprint(text).to_string();
}

std::string verdict_text(const PlanVerdict& verdict) {
  if (verdict.outcome == PlanOutcome::kRefused) return cat("refused: ", verdict.problem);
  std::string text(to_string(verdict.outcome));
  if (verdict.memory > 0) append(text, cat(", ", byte_text(verdict.memory)));
  if (verdict.capacity > 0) append(text, cat(" of ", byte_text(verdict.capacity)));
  if (verdict.seconds > 0) append(text, cat(", ", seconds_text(verdict.seconds)));
  if (verdict.outcome == PlanOutcome::kFits || verdict.memory > 0)
    append(text, cat(", ", byte_text(verdict.collective_bytes), " in collectives"));
  return text;
}

// Compiles candidates one at a time. State shared between steps is in its members.
class Search {
 public:
  Search(const PlanProblem& problem, const PlanOptions& options)
      : problem_(problem), options_(options) {}

  Result<PlanResult> run() {
    std::vector<PlannedCandidate> all;
    try {
      all = plan_candidates(problem_, options_, result_.exhaustive);
    } catch (const Error& error) {
      return error;
    }
    result_.candidates = all.size();
    if (!options_.journal.empty()) {
      MESHARD_ASSIGN_OR_RETURN(
          journal_, PlanJournal::open(options_.journal, problem_line(problem_, options_)));
    }
    std::vector<PlannedCandidate> waiting = without_known(std::move(all));
    MESHARD_RETURN_IF_ERROR(compile(std::move(waiting)));
    report_progress(nullptr);
    std::stable_sort(result_.ranking.begin(), result_.ranking.end(),
                     [](const PlannedCandidate& a, const PlannedCandidate& b) {
                       return better(a.verdict, b.verdict);
                     });
    return std::move(result_);
  }

 private:
  // Removes candidates that cannot fit, and those in the journal.
  std::vector<PlannedCandidate> without_known(std::vector<PlannedCandidate> all) {
    std::vector<PlannedCandidate> waiting;
    for (PlannedCandidate& one : all) {
      if (problem_.capacity && one.estimate.least_memory > static_cast<double>(*problem_.capacity) *
                                                               (1 - options_.margin)) {
        ++result_.ruled_out;
        continue;
      }
      const PlanVerdict* known = nullptr;
      if (journal_) {
        auto found = journal_->verdicts().find(one.candidate.to_string());
        if (found != journal_->verdicts().end()) known = &found->second;
      }
      if (!known) {
        waiting.push_back(std::move(one));
        continue;
      }
      one.verdict = *known;
      ++result_.resumed;
      keep(std::move(one));
    }
    return waiting;
  }

  Result<void> compile(std::vector<PlannedCandidate> waiting) {
    auto begun = std::chrono::steady_clock::now();
    for (PlannedCandidate& one : waiting) {
      if (std::chrono::steady_clock::now() - begun >= options_.time_limit)
        return end_by("the time limit");
      if (options_.most_compiled > 0 && result_.compiled >= options_.most_compiled)
        return end_by(cat("the limit of ", options_.most_compiled, " compiles"));
      report_progress(&one.candidate);
      MESHARD_ASSIGN_OR_RETURN(one.verdict, judged(problem_, options_.margin, one));
      ++result_.compiled;
      if (journal_) MESHARD_RETURN_IF_ERROR(journal_->add(one.candidate, one.verdict));
      keep(std::move(one));
    }
    return {};
  }

  Result<void> end_by(std::string limit) {
    result_.exhaustive = false;
    result_.ended_by = std::move(limit);
    return {};
  }

  // Reports are large: only those of the best candidates are kept.
  void keep(PlannedCandidate one) {
    constexpr std::size_t kMostReports = 16;
    result_.ranking.push_back(std::move(one));
    std::size_t last = result_.ranking.size() - 1;
    if (best_ == kNone || better(result_.ranking[last].verdict, result_.ranking[best_].verdict))
      best_ = last;
    std::size_t worst = kNone, reports = 0;
    for (std::size_t i = 0; i <= last; ++i) {
      if (!result_.ranking[i].report) continue;
      ++reports;
      if (worst == kNone || better(result_.ranking[worst].verdict, result_.ranking[i].verdict))
        worst = i;
    }
    if (reports > kMostReports) result_.ranking[worst].report.reset();
  }

  void report_progress(const PlanCandidate* next) const {
    if (!options_.progress) return;
    PlanProgress progress{.done = result_.ranking.size(),
                          .of = result_.candidates - result_.ruled_out,
                          .resumed = result_.resumed,
                          .next = next};
    if (best_ != kNone && result_.ranking[best_].verdict.outcome == PlanOutcome::kFits) {
      progress.best = &result_.ranking[best_].candidate;
      progress.best_verdict = &result_.ranking[best_].verdict;
    }
    options_.progress(progress);
  }

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  const PlanProblem& problem_;
  const PlanOptions& options_;
  PlanResult result_;
  std::optional<PlanJournal> journal_;
  std::size_t best_ = kNone;
};

}  // namespace

std::string_view to_string(PlanOutcome outcome) {
  switch (outcome) {
    case PlanOutcome::kFits: return "fits";
    case PlanOutcome::kTooBig: return "too big";
    case PlanOutcome::kRefused: return "refused";
  }
  return "";
}

PlanVerdict verdict_of(const ProgramReport& report, double margin) {
  PlanVerdict verdict;
  for (const Collective& one : report.collectives())
    verdict.collective_bytes += one.bytes() * one.executions;
  if (report.parts().roofline) verdict.seconds = report.parts().roofline->seconds_in_sequence();
  if (const std::optional<MemoryUse>& memory = report.memory()) {
    verdict.memory = memory->total();
    verdict.capacity = memory->capacity.value_or(0);
    if (memory->capacity &&
        static_cast<double>(verdict.memory) > static_cast<double>(verdict.capacity) * (1 - margin))
      verdict.outcome = PlanOutcome::kTooBig;
  }
  if (!report.fits()) verdict.outcome = PlanOutcome::kTooBig;
  verdict.problem = report.parts().out_of_memory;
  return verdict;
}

bool better(const PlanVerdict& a, const PlanVerdict& b) {
  if (a.outcome != b.outcome) return a.outcome < b.outcome;
  // Of two that are too big, the one closer to fitting is better.
  if (a.outcome == PlanOutcome::kTooBig && a.memory != b.memory)
    return a.memory != 0 && (b.memory == 0 || a.memory < b.memory);
  if (a.seconds != b.seconds) return a.seconds < b.seconds;
  if (a.collective_bytes != b.collective_bytes) return a.collective_bytes < b.collective_bytes;
  return a.memory < b.memory;
}

std::string PlanResult::to_string(std::size_t most) const {
  std::string out =
      cat(candidates, " candidates: ", compiled, " compiled, ", resumed, " read from the journal, ",
          ruled_out, " ruled out by the bytes of their arguments");
  std::size_t left = candidates - compiled - resumed - ruled_out;
  if (left > 0) append(out, cat(", ", left, " not tried"));
  append(out, "\n");
  if (!ended_by.empty()) append(out, cat("stopped by ", ended_by, "\n"));
  if (!exhaustive && ended_by.empty()) append(out, "not all combinations were considered\n");
  if (!anything_fits()) append(out, "nothing fits\n");
  for (std::size_t i = 0; i < ranking.size() && i < most; ++i)
    append(out,
           cat(i + 1, ". ", ranking[i].candidate, "\n   ", verdict_text(ranking[i].verdict), "\n"));
  return out;
}

std::vector<PlannedCandidate> plan_candidates(const PlanProblem& problem,
                                              const PlanOptions& options, bool& complete) {
  std::vector<PlannedCandidate> out;
  std::vector<std::vector<MeshAxis>> meshes = meshes_of(problem);
  std::size_t share = options.most_candidates / std::max<std::size_t>(meshes.size(), 1);
  share = std::max<std::size_t>(share, 1);
  complete = true;
  for (const std::vector<MeshAxis>& axes : meshes) {
    SpecLists lists;
    for (const FreeValue& value : problem.values) lists.push_back(spec_candidates(value, axes));
    bool few = combinations(lists) <= static_cast<double>(share);
    complete = complete && few;
    // A beam of the full share would call the estimate too often: for each beam entry and spec.
    std::vector<PlannedCandidate> found =
        few ? all_of(problem, axes, lists)
            : most_promising_of(problem, axes, lists, std::min<std::size_t>(share, 64));
    for (PlannedCandidate& one : found) out.push_back(std::move(one));
  }
  std::stable_sort(out.begin(), out.end(), more_promising);
  return out;
}

PlanResult search(const PlanProblem& problem, const PlanOptions& options, SourceLocation where) {
  if (!(options.margin >= 0 && options.margin < 1))
    throw_invalid(where, "[plan] the margin must be in [0, 1), got ", options.margin);
  if (!problem.compile)
    throw_invalid(where, "[plan] no function to compile candidates is specified");
  Result<PlanResult> found = Search(problem, options).run();
  if (!found.ok()) throw found.error().at(where);
  return *std::move(found);
}

}  // namespace meshard
