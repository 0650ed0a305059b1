// Searches meshes and shardings, first by cheap estimates, then by compiling candidates.
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "meshard/base/enum_names.h"
#include "meshard/base/fields.h"
#include "meshard/base/result.h"
#include "meshard/explain/report.h"
#include "meshard/plan/candidate.h"

namespace meshard {

/// Value type: the estimate of a candidate before it is compiled.
struct PlanEstimate {
  /// Estimated time of one run; 0 if the hardware's figures are unknown.
  double seconds = 0;
  /// Lower bound for the bytes that one device needs: its arguments.
  double least_memory = 0;
  /// Estimated bytes that one device sends or receives in collectives.
  double communication = 0;

  MESHARD_FIELDS(seconds, communication, least_memory)
  friend bool operator==(const PlanEstimate&, const PlanEstimate&) = default;
};

/// The result of compiling a candidate.
enum class PlanOutcome {
  kFits,     ///< compiled, and fits into memory
  kTooBig,   ///< does not fit into a device's memory
  kRefused,  ///< rejected by the compiler for another reason
};

template <>
struct EnumNames<PlanOutcome> {
  using enum PlanOutcome;
  static constexpr EnumName<PlanOutcome> kNames[] = {
      {kFits, "fits"}, {kTooBig, "too big"}, {kRefused, "refused"}};
};

/// The source of an estimated time of a run.
enum class TimeBasis {
  kUnknown,   ///< the hardware's figures are unknown
  kRoofline,  ///< the roofline's bounds, one after the other, because there is no schedule
  kSchedule,  ///< the order of the compiled instructions, so that hidden transfers take no time
};

template <>
struct EnumNames<TimeBasis> {
  using enum TimeBasis;
  static constexpr EnumName<TimeBasis> kNames[] = {
      {kUnknown, "unknown"}, {kRoofline, "roofline"}, {kSchedule, "schedule"}};
};

/// Value type: the result of compiling a candidate.
struct PlanVerdict {
  PlanOutcome outcome = PlanOutcome::kFits;
  /// Bytes that one device needs; 0 if unknown.
  std::int64_t memory = 0;
  /// Bytes that one device has; 0 if unknown.
  std::int64_t capacity = 0;
  /// Estimated time of one run: seconds_of() the report, and `return_seconds`. 0 if the hardware's
  /// figures are unknown.
  double seconds = 0;
  /// The source of `seconds`.
  TimeBasis basis = TimeBasis::kUnknown;
  /// The part of `seconds` that waits for transfers between devices, by the schedule. 0 without a
  /// schedule.
  double exposed_seconds = 0;
  /// The time of transfers that run behind computation, by the schedule. 0 without a schedule.
  double hidden_seconds = 0;
  /// The part of `seconds` that brings results to the shardings of the arguments that they are in
  /// the next run.
  double return_seconds = 0;
  /// Bytes of all collectives, over all executions, with those that bring results back.
  std::int64_t collective_bytes = 0;
  /// The compiler's message, if it rejected the candidate.
  std::string problem = {};

  MESHARD_FIELDS(outcome, memory, capacity, seconds, basis, exposed_seconds, hidden_seconds,
                 return_seconds, collective_bytes, problem)
  friend bool operator==(const PlanVerdict&, const PlanVerdict&) = default;
};

/// The estimated time of a run, by which plans are ranked. It is Schedule::seconds; in a report
/// without a schedule, the sum of the roofline's bounds, so that two programs with the same largest
/// bound still differ. 0 if the hardware's figures are unknown.
double seconds_of(const ProgramReport& report);

/// The source of seconds_of() the report.
TimeBasis time_basis_of(const ProgramReport& report);

/// The verdict for a report. @param margin the fraction of memory that must stay free
PlanVerdict verdict_of(const ProgramReport& report, double margin);

/// True if `a` ranks above `b`: it fits; takes less time; moves fewer bytes; needs less memory.
bool better(const PlanVerdict& a, const PlanVerdict& b);

/// Value type: the cost of bringing results to other shardings after a run.
struct ReturnCost {
  double seconds = 0;
  std::int64_t bytes = 0;
};

/// Value type: a search problem.
struct PlanProblem {
  /// Everything besides the fields below that affects how a candidate compiles: the module, the
  /// target, the compiler's version and options. Problems with the same text share a journal.
  std::string identity;
  std::int64_t devices = 1;
  std::vector<std::string> axes;
  /// Axes with a fixed size. Default: none.
  std::map<std::string, std::int64_t> pinned = {};
  std::vector<FreeValue> values = {};
  /// Bytes of a device's memory; none: unknown, and no candidate is ruled out before compiling.
  std::optional<std::int64_t> capacity = std::nullopt;
  /// Returns false for meshes that do not suit the fixed shardings. Default: all meshes suit.
  std::function<bool(const std::vector<MeshAxis>&)> suits = {};
  /// Estimates a candidate. Default: the estimate uses only the bytes of the free values.
  std::function<PlanEstimate(const PlanCandidate&)> estimate = {};
  /// Candidates with equal keys are the same program: only the first of them is compiled. Default:
  /// all differ.
  std::function<std::string(const PlanCandidate&)> program_key = {};
  /// Compiles a candidate. An error with code resource exhausted means that it does not fit.
  std::function<Result<ProgramReport>(const PlanCandidate&)> compile = {};
  /// The cost of a program between two runs. Default: nothing.
  std::function<ReturnCost(const ProgramReport&)> return_cost = {};

  /// The program as it was given: compiled first, and always part of the result. Its specs may have
  /// open dimensions, and it need not be one of the other candidates. Default: none.
  std::optional<PlanCandidate> given = std::nullopt;
  /// Compiles it. Required with `given`, unless that is one of the candidates.
  std::function<Result<ProgramReport>()> compile_given = {};
  /// True if `compile` makes the same program of `given`.
  bool given_is_candidate = false;

  /// True if `compile` and `compile_given` may be called from several threads at once.
  bool is_concurrent = false;
  /// If set, a search that fails or whose time is over sets it, so that running compiles can end.
  /// They then return an error of code cancelled.
  std::shared_ptr<std::atomic<bool>> ended = nullptr;
};

/// Value type: the progress of a search.
struct PlanProgress {
  /// Number of finished candidates, of all candidates, and of those finished in an earlier run.
  std::size_t done = 0, of = 0, resumed = 0;
  /// The candidate to compile next; null at the end.
  const PlanCandidate* next = nullptr;
  /// The best candidate so far that fits; null if none does.
  const PlanCandidate* best = nullptr;
  const PlanVerdict* best_verdict = nullptr;
  /// The names of the free values, in the order of a candidate's specs.
  std::vector<std::string> names = {};
};

/// Options of a search for a plan: its limits, and how candidates are compiled.
struct PlanOptions {
  /// No candidate is started after this time, and compiles that are running are stopped if the
  /// problem allows it. Only the given program is compiled to the end. Default: 24 hours.
  std::chrono::duration<double> time_limit = std::chrono::hours(24);
  /// Maximum number of compiled candidates, the most promising ones, and the given one. 0, the
  /// default: no limit.
  std::size_t most_compiled = 0;
  /// Number of compiles at the same time, if the problem allows several. 0, the default: one for
  /// each core, at most 2. The order of the search depends on it.
  std::size_t jobs = 0;
  /// Maximum number of combinations to enumerate. Beyond it, the most promising candidates of each
  /// mesh are built value by value. Default: 20,000; fewer if their estimates would take more than
  /// a tenth of the time limit.
  std::size_t most_candidates = 20000;
  /// Fraction of a device's memory that must stay free, in [0, 1). Default: 0.
  double margin = 0;
  /// File that stores verdicts, for resuming the search. Empty, the default: none.
  std::string journal = {};
  std::function<void(const PlanProgress&)> progress = {};
};

/// Value type: a candidate with its estimate and verdict.
struct PlannedCandidate {
  PlanCandidate candidate;
  /// True for the program as it was given.
  bool as_given = false;
  PlanEstimate estimate = {};
  PlanVerdict verdict = {};
  /// The report; only those of the best 16 candidates are kept. None also if an earlier run
  /// compiled the candidate, or the compiler refused it.
  std::optional<ProgramReport> report = std::nullopt;
};

/// Value type: the result of a search.
struct PlanResult {
  /// Candidates with a verdict, best first. Of equal ones the given one is first; if it leaves
  /// dimensions open, it is last, because the others name what the compiler chose for it.
  std::vector<PlannedCandidate> ranking;
  /// The names of the free values, in the order of a candidate's specs.
  std::vector<std::string> names = {};
  /// Numbers of candidates: all; left out without compiling, because their arguments alone do not
  /// fit, or because another one is the same program; compiled in this run; taken from the journal.
  std::size_t candidates = 0, ruled_out = 0, repeated = 0, compiled = 0, resumed = 0;
  /// False if combinations were skipped, or a limit ended the search.
  bool exhaustive = true;
  /// The limit that ended the search; empty if none did.
  std::string ended_by = {};

  bool anything_fits() const {
    return !ranking.empty() && ranking.front().verdict.outcome == PlanOutcome::kFits;
  }
  /// The given candidate; null if the problem has no given candidate.
  const PlannedCandidate* given() const;
  /// True if the given candidate fits, and no other is better.
  bool given_is_best() const;
  /// The Pareto front of time and memory: indices into the ranking. The first is the best; each
  /// other one needs less memory than all that are faster.
  std::vector<std::size_t> front() const;
  /// The counts, the given candidate, a line for each of the first `most` candidates of the
  /// ranking, and the Pareto front.
  std::string to_string(std::size_t most = 5) const;
};

/// The candidates of a problem with their estimates, most promising first. These take the least
/// time by estimate; where that is unknown, they move the fewest bytes; then need the least memory.
/// The given candidate is not added.
/// @param complete set to false if there are more than options.most_candidates combinations
/// @error invalid argument: no axes, a repeated axis, or pinned sizes that do not divide the number
/// of devices; errors of spec_candidates(), thrown
std::vector<PlannedCandidate> plan_candidates(const PlanProblem& problem,
                                              const PlanOptions& options, bool& complete);

/// Compiles the given candidate, then others, and ranks them. Every second compile is of the
/// candidate that is most promising by its estimate, corrected by how wrong the estimates of
/// similar compiled candidates are. The others are of the most promising neighbor of the best
/// candidate so far: another spec of one value, or another mesh. Candidates with a verdict in the
/// journal of the same problem are not compiled again.
/// @error the errors of plan_candidates(), and of reading or writing the journal; a journal of
/// another problem.
/// Candidates that do not compile are part of the result.
PlanResult search(const PlanProblem& problem, const PlanOptions& options = {},
                  SourceLocation where = SourceLocation::current());

/// Owner of a file to which verdicts are appended, one line each. Truncated lines are skipped when
/// reading.
class PlanJournal {
 public:
  /// Opens or creates the file. @param problem one line of text that identifies the problem
  /// @error the file cannot be read or written; failed precondition: it belongs to another problem,
  /// or another version of meshard wrote it
  static Result<PlanJournal> open(const std::string& path, const std::string& problem);

  /// Verdicts of earlier runs, by the names of the candidates.
  const std::map<std::string, PlanVerdict>& verdicts() const { return verdicts_; }
  /// Appends a verdict and flushes it to the system. @error the file cannot be written
  /// @param candidate its name: one line without tabs, unique for each candidate
  Result<void> add(const std::string& candidate, const PlanVerdict& verdict);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::map<std::string, PlanVerdict> verdicts_;
};

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
