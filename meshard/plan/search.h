// Searches meshes and shardings: cheap judgements first, then the compiler's.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/explain/report.h"
#include "meshard/plan/candidate.h"

namespace meshard {

/// A value: what is known of a candidate before it is compiled.
struct PlanEstimate {
  /// Bytes of one device that the program certainly needs: its arguments.
  double least_memory = 0;
  /// Bytes that one device gets and gives in collectives, as far as they can be told.
  double communication = 0;
  friend bool operator==(const PlanEstimate&, const PlanEstimate&) = default;
};

/// What became of a candidate.
enum class PlanOutcome {
  kFits,     ///< compiled, and fits
  kTooBig,   ///< does not fit into a device's memory
  kRefused,  ///< the compiler refused it for another reason
};

/// `fits`, `too big`, `refused`
std::string_view to_string(PlanOutcome outcome);

/// A value: what compiling a candidate showed.
struct PlanVerdict {
  PlanOutcome outcome = PlanOutcome::kFits;
  /// What one device needs and has, in bytes; 0 if not known.
  std::int64_t memory = 0, capacity = 0;
  /// A step's time at least, by the roofline: its bounds one after another, so that two candidates
  /// with the same largest bound still differ. 0 without figures of the hardware.
  double seconds = 0;
  /// Of all collectives, each as often as it runs.
  std::int64_t collective_bytes = 0;
  /// The compiler's words, if it refused.
  std::string problem = {};
  friend bool operator==(const PlanVerdict&, const PlanVerdict&) = default;
};

/// What a report says for the ranking. @param margin the part of the memory that must stay free
PlanVerdict verdict_of(const ProgramReport& report, double margin);

/// True if `a` is the better one: it fits; takes less time; moves fewer bytes; needs less memory.
bool better(const PlanVerdict& a, const PlanVerdict& b);

/// A value: what is to be planned.
struct PlanProblem {
  /// What, beside the fields below, decides how a candidate compiles: the module, the target, the
  /// compiler's version and options. Two problems with the same text share a journal.
  std::string identity;
  std::int64_t devices = 1;
  std::vector<std::string> axes;
  /// Axes whose size may not be chosen.
  std::map<std::string, std::int64_t> pinned = {};
  std::vector<FreeValue> values = {};
  /// Bytes of a device's memory; none: unknown, and nothing is ruled out before it is compiled.
  std::optional<std::int64_t> capacity = std::nullopt;
  /// False for meshes that do not suit what is not free. None: all do.
  std::function<bool(const std::vector<MeshAxis>&)> suits = {};
  /// None: all candidates are alike but for the bytes of their free values.
  std::function<PlanEstimate(const PlanCandidate&)> estimate = {};
  /// Compiles a candidate. An error with code resource exhausted: it does not fit.
  std::function<Result<ProgramReport>(const PlanCandidate&)> compile = {};
};

/// A value: how far a search is.
struct PlanProgress {
  /// Candidates judged of those there are, and of these how many in an earlier run.
  std::size_t done = 0, of = 0, resumed = 0;
  /// The candidate to be compiled next; null at the end.
  const PlanCandidate* next = nullptr;
  /// The best so far that fits; null if none does.
  const PlanCandidate* best = nullptr;
  const PlanVerdict* best_verdict = nullptr;
};

struct PlanOptions {
  /// No candidate is begun after this. The one being compiled is finished.
  std::chrono::duration<double> time_limit = std::chrono::hours(24);
  /// At most so many are compiled, the most promising ones. 0: all.
  std::size_t most_compiled = 0;
  /// More combinations than this are not all looked at: of each mesh the most promising ones are
  /// grown value by value.
  std::size_t most_candidates = 20000;
  /// The part of a device's memory that must stay free, in [0, 1).
  double margin = 0;
  /// A file that verdicts are written to as they come, and read from when a search goes on. Empty:
  /// none.
  std::string journal = {};
  std::function<void(const PlanProgress&)> progress = {};
};

/// A value: a candidate with everything known of it.
struct PlannedCandidate {
  PlanCandidate candidate;
  PlanEstimate estimate;
  PlanVerdict verdict;
  /// None if an earlier run compiled it.
  std::optional<ProgramReport> report = std::nullopt;
};

/// A value: the result of a search.
struct PlanResult {
  /// Compiled candidates, the best first.
  std::vector<PlannedCandidate> ranking;
  /// Candidates there are; ruled out without compiling, because their arguments alone do not fit;
  /// compiled in this run; taken from the journal.
  std::size_t candidates = 0, ruled_out = 0, compiled = 0, resumed = 0;
  /// False if combinations were left out, or a limit ended the search.
  bool exhaustive = true;
  /// Empty, or which limit it was.
  std::string ended_by = {};

  bool anything_fits() const {
    return !ranking.empty() && ranking.front().verdict.outcome == PlanOutcome::kFits;
  }
  /// Counts, and a line for each of the first `most` of the ranking.
  std::string to_string(std::size_t most = 5) const;
};

/// Every candidate of a problem with its estimate, the most promising first: fewest bytes moved,
/// then least memory.
/// @param complete set to false if there are more than options.most_candidates combinations
/// @error invalid argument: no axes, an axis twice or pinned to what does not divide the devices;
/// what spec_candidates() throws
std::vector<PlannedCandidate> plan_candidates(const PlanProblem& problem,
                                              const PlanOptions& options, bool& complete);

/// Compiles candidates, the most promising first, and ranks them. What a journal of the same
/// problem tells is not compiled again.
/// @error as above; what reading or writing the journal meets; a journal of another problem.
/// Candidates that do not compile are part of the result.
Result<PlanResult> search(const PlanProblem& problem, const PlanOptions& options = {});

}  // namespace meshard
