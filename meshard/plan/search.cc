#include "meshard/plan/search.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/fingerprint.h"
#include "meshard/plan/candidate_pool.h"

namespace meshard {
namespace {

Result<PlanVerdict> judged(const PlanProblem& problem, double margin, PlannedCandidate& one) {
  Result<ProgramReport> report = caught([&] {
    return one.as_given && problem.compile_given ? problem.compile_given()
                                                 : problem.compile(one.candidate);
  });
  if (report.ok()) {
    PlanVerdict verdict = verdict_of(*report, margin);
    if (problem.return_cost) {
      ReturnCost cost = problem.return_cost(*report);
      verdict.return_seconds = cost.seconds;
      verdict.seconds += cost.seconds;
      verdict.collective_bytes += cost.bytes;
    }
    one.report = *std::move(report);
    return verdict;
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
  for (const auto& [axis, size] : problem.pinned) append(text, "\n", axis, "=", size);
  for (const FreeValue& value : problem.values)
    append(text, "\n", value.name, "\n", value.type, "\n", value.spec);
  if (problem.given) append(text, "\n", *problem.given);
  append(text, "\n", options.margin);
  return fingerprint(text).to_string();
}

// Sets a flag when the time is over, unless it is destroyed before.
class Deadline {
 public:
  Deadline(std::chrono::steady_clock::time_point at, std::shared_ptr<std::atomic<bool>> flag)
      : thread_([this, at, flag = std::move(flag)](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          bool stopped = wake_.wait_until(lock, stop, at, [&] { return stop.stop_requested(); });
          if (stopped) return;
          passed_ = true;
          flag->store(true);
        }) {}
  bool passed() const { return passed_; }

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::atomic<bool> passed_ = false;
  std::jthread thread_;  // joined before the members that it uses are destroyed
};

// The order of PlanResult::ranking. The given program was compiled first, so that a stable sort
// leaves it before its equals.
bool ranks_before(const PlannedCandidate& a, const PlannedCandidate& b) {
  if (better(a.verdict, b.verdict)) return true;
  bool is_equal = !better(b.verdict, a.verdict);
  return is_equal && !a.as_given && b.as_given && is_open(b.candidate);
}

// Compiles a batch of candidates at a time. State shared between steps is in its members.
class Search {
 public:
  Search(const PlanProblem& problem, const PlanOptions& options)
      : problem_(problem), options_(options), pool_(problem) {}

  Result<PlanResult> run() {
    begun_ = std::chrono::steady_clock::now();
    for (const FreeValue& value : problem_.values) result_.names.push_back(value.name);
    if (problem_.ended) problem_.ended->store(false);
    std::vector<PlannedCandidate> all;
    MESHARD_RETURN_IF_ERROR(caught([&] {
      all = plan_candidates(problem_, options_, result_.exhaustive);
      meshes_ = meshes_of(problem_);
    }));
    if (!options_.journal.empty()) {
      MESHARD_ASSIGN_OR_RETURN(
          journal_, PlanJournal::open(options_.journal, problem_line(problem_, options_)));
    }
    add_given();
    for (PlannedCandidate& one : all) add(pool_.add(std::move(one)));
    Result<void> compiled = compile();
    deadline_.reset();
    if (problem_.ended) problem_.ended->store(false);  // later compiles of the problem may run
    if (!compiled.ok()) return compiled.error();
    report_progress(nullptr);
    std::ranges::stable_sort(result_.ranking, ranks_before);
    result_.candidates = pool_.size();
    return std::move(result_);
  }

 private:
  // The given program comes first, also if it is one of the candidates, or like none of them.
  void add_given() {
    if (!problem_.given) return;
    PlannedCandidate one{.candidate = *problem_.given, .as_given = true};
    std::int64_t devices = 1;
    for (const MeshAxis& axis : one.candidate.axes) devices *= axis.size;
    if (devices == problem_.devices) one.estimate = estimate_of(problem_, one.candidate);
    given_ = pool_.add(std::move(one));
    seen_.insert(*given_);
    given_waits_ = !find_in_journal(*given_);
    if (problem_.given_is_candidate) (void)is_repeated(*given_);
    pool_.leave_out(*given_);  // it is compiled before all others
  }

  std::string journal_key(std::size_t number) {
    std::string text = pool_[number].candidate.to_string();
    return pool_[number].as_given ? cat("as given: ", text) : text;
  }

  // Adds a new candidate, unless it cannot fit.
  void add(std::size_t number) {
    if (!seen_.insert(number).second) return;
    if (problem_.capacity && pool_[number].estimate.least_memory >
                                 static_cast<double>(*problem_.capacity) * (1 - options_.margin)) {
      ++result_.ruled_out;
      pool_.leave_out(number);
      return;
    }
    if (!find_in_journal(number) && is_repeated(number)) {
      ++result_.repeated;
      pool_.leave_out(number);
    }
  }

  // True if another candidate is the same program.
  bool is_repeated(std::size_t number) {
    if (!problem_.program_key) return false;
    return !programs_.insert(problem_.program_key(pool_[number].candidate)).second;
  }

  // True if an earlier run has compiled the candidate.
  bool find_in_journal(std::size_t number) {
    if (!journal_) return false;
    auto found = journal_->verdicts().find(journal_key(number));
    if (found == journal_->verdicts().end()) return false;
    ++result_.resumed;
    pool_[number].verdict = found->second;
    keep(number);
    return true;
  }

  std::size_t jobs() const {
    if (!problem_.is_concurrent) return 1;
    if (options_.jobs > 0) return options_.jobs;
    return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 2);
  }

  Result<void> compile() {
    while (true) {
      bool any = given_waits_ || pool_.waiting() > 0;
      if (!any && !grow()) return {};
      if (std::chrono::steady_clock::now() - begun_ >= options_.time_limit)
        return end_by("the time limit");
      std::size_t most = jobs();
      if (options_.most_compiled > 0) {
        if (result_.compiled >= options_.most_compiled)
          return end_by(cat("the limit of ", options_.most_compiled, " compiles"));
        most = std::min(most, options_.most_compiled - result_.compiled);
      }
      if (!given_waits_) start_deadline();
      std::vector<std::size_t> batch = next_batch(most);
      report_progress(&pool_[batch.front()].candidate);
      MESHARD_RETURN_IF_ERROR(compile(batch));
    }
  }

  // The given program is compiled to the end, whatever time that takes.
  void start_deadline() {
    if (deadline_ || !problem_.ended || !is_limited(options_.time_limit)) return;
    auto length =
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(options_.time_limit);
    deadline_.emplace(begun_ + length, problem_.ended);
  }
  // False for a time that the clock cannot add.
  static bool is_limited(std::chrono::duration<double> time) {
    return time < std::chrono::hours(24 * 365);
  }

  // Adds neighbors of the best candidate where the list of candidates has not all of them.
  bool grow() {
    if (best_ == kNone || !grown_.insert(best_).second) return false;
    for (std::size_t number : pool_.add_neighbors(best_, meshes_)) add(number);
    return pool_.waiting() > 0;
  }

  std::vector<std::size_t> next_batch(std::size_t most) {
    std::vector<std::size_t> batch;
    if (given_waits_) {
      given_waits_ = false;
      batch.push_back(*given_);
    }
    if (!result_.exhaustive || given_) grow();
    while (batch.size() < most) {
      std::optional<std::size_t> next;
      if (best_ != kNone && turn_++ % 2 == 0) next = pool_.take_neighbor_of(best_);
      if (!next) next = pool_.take();
      if (!next) break;
      batch.push_back(*next);
    }
    return batch;
  }

  Result<void> compile(const std::vector<std::size_t>& batch) {
    std::vector<std::optional<Result<PlanVerdict>>> verdicts(batch.size());
    std::vector<std::exception_ptr> thrown(batch.size());
    auto judge = [&](std::size_t i) {
      try {
        verdicts[i] = judged(problem_, options_.margin, pool_[batch[i]]);
      } catch (...) {
        thrown[i] = std::current_exception();
      }
      bool failed = thrown[i] || !verdicts[i]->ok();
      if (failed && problem_.ended) problem_.ended->store(true);
    };
    {
      std::vector<std::jthread> others;
      for (std::size_t i = 1; i < batch.size(); ++i) others.emplace_back(judge, i);
      judge(0);
    }
    for (const std::exception_ptr& each : thrown)
      if (each) std::rethrow_exception(each);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      bool was_stopped = deadline_ && deadline_->passed() && !verdicts[i]->ok() &&
                         verdicts[i]->error().code() == ErrorCode::kCancelled;
      if (was_stopped) continue;
      MESHARD_ASSIGN_OR_RETURN(pool_[batch[i]].verdict, *std::move(verdicts[i]));
      ++result_.compiled;
      if (journal_)
        MESHARD_RETURN_IF_ERROR(journal_->add(journal_key(batch[i]), pool_[batch[i]].verdict));
      keep(batch[i]);
    }
    return {};
  }

  Result<void> end_by(std::string limit) {
    result_.exhaustive = false;
    result_.ended_by = std::move(limit);
    return {};
  }

  // Reports are large: only those of the best candidates are kept, and that of the given one.
  void keep(std::size_t number) {
    constexpr std::size_t kMostReports = 16;
    pool_.judged(number, pool_[number].verdict);
    if (best_ == kNone || better(pool_[number].verdict, pool_[best_].verdict)) best_ = number;
    std::optional<ProgramReport> report = std::exchange(pool_[number].report, std::nullopt);
    result_.ranking.push_back(pool_[number]);
    result_.ranking.back().report = std::move(report);
    std::size_t worst = kNone, reports = 0;
    for (std::size_t i = 0; i < result_.ranking.size(); ++i) {
      if (!result_.ranking[i].report || result_.ranking[i].as_given) continue;
      ++reports;
      if (worst == kNone || better(result_.ranking[worst].verdict, result_.ranking[i].verdict))
        worst = i;
    }
    if (reports > kMostReports) result_.ranking[worst].report.reset();
  }

  void report_progress(const PlanCandidate* next) {
    if (!options_.progress) return;
    PlanProgress progress{.done = result_.ranking.size(),
                          .of = pool_.size() - result_.ruled_out - result_.repeated,
                          .resumed = result_.resumed,
                          .next = next,
                          .names = result_.names};
    if (best_ != kNone && pool_[best_].verdict.outcome == PlanOutcome::kFits) {
      progress.best = &pool_[best_].candidate;
      progress.best_verdict = &pool_[best_].verdict;
    }
    options_.progress(progress);
  }

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  const PlanProblem& problem_;
  const PlanOptions& options_;
  CandidatePool pool_;
  PlanResult result_;
  std::optional<PlanJournal> journal_;
  std::chrono::steady_clock::time_point begun_;
  std::optional<Deadline> deadline_;
  std::vector<std::vector<MeshAxis>> meshes_;
  std::optional<std::size_t> given_;
  bool given_waits_ = false;
  std::set<std::size_t> seen_, grown_;  // numbers of candidates
  std::set<std::string> programs_;      // keys of programs
  std::size_t turn_ = 0;
  std::size_t best_ = kNone;
};

// The number is that of the format. Version 1 had no given candidate and no return_seconds; the
// seconds of version 2 are those of the roofline.
constexpr std::string_view kJournalHead = "meshard plan 3 ", kJournalName = "meshard plan ";

Error file_error(std::string_view what, const std::string& path) {
  return Error(ErrorCode::kUnavailable,
               cat("[plan] cannot ", what, " the journal ", path, ": ", std::strerror(errno)));
}

// Replaces tabs, which separate fields, and newlines, which separate lines.
std::string in_one_field(std::string_view text) {
  std::string out;
  for (char c : text.substr(0, 2000)) out.push_back(c == '\t' || c == '\n' || c == '\r' ? ' ' : c);
  return out;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    std::size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// The fields of a verdict, each after a tab. The last field is a period, so that truncated lines
// are recognized.
std::string line_of(const std::string& candidate, const PlanVerdict& verdict) {
  std::string line = candidate;
  visit_fields(verdict, [&](std::string_view, const auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    line += '\t';
    if constexpr (NamedEnum<Field>)
      append(line, enum_name(field));
    else if constexpr (std::is_same_v<Field, std::string>)
      append(line, in_one_field(field));
    else
      append(line, field);
  });
  return line + "\t.\n";
}

template <class T>
bool read_field(std::string_view text, T& out) {
  if constexpr (NamedEnum<T>) {
    for (const auto& [value, name] : EnumNames<T>::kNames)
      if (text == name) return out = value, true;
    return false;
  } else if constexpr (std::is_same_v<T, std::string>) {
    out = text;
    return true;
  } else {
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc() && end == text.data() + text.size();
  }
}

std::optional<PlanVerdict> read_line(const std::vector<std::string_view>& fields) {
  PlanVerdict verdict;
  std::size_t count = 1;
  bool is_sound = true;
  visit_fields(verdict, [&](std::string_view, auto& field) {
    is_sound = is_sound && count < fields.size() && read_field(fields[count], field);
    ++count;
  });
  if (!is_sound || fields.size() != count + 1 || fields[count] != ".") return std::nullopt;
  return verdict;
}

}  // namespace

TimeBasis time_basis_of(const ProgramReport& report) {
  if (report.parts().schedule) return TimeBasis::kSchedule;
  return report.parts().roofline ? TimeBasis::kRoofline : TimeBasis::kUnknown;
}

double seconds_of(const ProgramReport& report) {
  const ProgramReport::Parts& parts = report.parts();
  if (parts.schedule) return parts.schedule->seconds;
  return parts.roofline ? parts.roofline->seconds_in_sequence() : 0;
}

PlanVerdict verdict_of(const ProgramReport& report, double margin) {
  PlanVerdict verdict;
  for (const Collective& one : report.collectives())
    verdict.collective_bytes += one.bytes() * one.executions;
  verdict.seconds = seconds_of(report);
  verdict.basis = time_basis_of(report);
  if (const std::optional<Schedule>& schedule = report.parts().schedule) {
    verdict.exposed_seconds = schedule->links.exposed_seconds;
    verdict.hidden_seconds = schedule->links.hidden_seconds;
  }
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

PlanResult search(const PlanProblem& problem, const PlanOptions& options, SourceLocation where) {
  if (!(options.margin >= 0 && options.margin < 1))
    throw_invalid(where, "[plan] the margin must be in [0, 1), got ", options.margin);
  if (!problem.compile)
    throw_invalid(where, "[plan] no function to compile candidates is specified");
  return Search(problem, options).run().value(where);
}

Result<PlanJournal> PlanJournal::open(const std::string& path, const std::string& problem) {
  PlanJournal journal;
  journal.path_ = path;
  journal.file_.reset(std::fopen(path.c_str(), "a+b"));
  if (!journal.file_) return file_error("open", path);
  std::FILE* file = journal.file_.get();
  std::rewind(file);
  std::string text;
  std::array<char, 65536> block;
  while (std::size_t count = std::fread(block.data(), 1, block.size(), file))
    text.append(block.data(), count);
  if (std::ferror(file)) return file_error("read", path);
  std::string head = cat(kJournalHead, problem);
  if (text.empty()) {
    std::string line = head + "\n";
    if (std::fwrite(line.data(), 1, line.size(), file) != line.size() || std::fflush(file) != 0)
      return file_error("write", path);
    return journal;
  }
  std::vector<std::string_view> lines = split(text, '\n');
  bool is_other_version = lines[0].starts_with(kJournalName) && !lines[0].starts_with(kJournalHead);
  if (is_other_version)
    return Error(ErrorCode::kFailedPrecondition,
                 cat("[plan] the journal ", path,
                     " was written by another version of meshard, in a "
                     "format that this one does not read: remove it or choose another file"));
  if (lines[0] != head)
    return Error(ErrorCode::kFailedPrecondition,
                 cat("[plan] the journal ", path, " belongs to another search (",
                     lines[0].substr(0, kJournalHead.size()) == kJournalHead
                         ? "the module, the target or the free arguments changed"
                         : "the file is not a journal",
                     "): remove it or choose another file"));
  for (std::string_view line : lines) {
    std::vector<std::string_view> fields = split(line, '\t');
    if (std::optional<PlanVerdict> verdict = read_line(fields))
      journal.verdicts_[std::string(fields[0])] = *verdict;
  }
  // Ends a truncated last line, so that the next entry starts on its own line.
  if (text.back() != '\n' && (std::fputc('\n', file) == EOF || std::fflush(file) != 0))
    return file_error("write", path);
  return journal;
}

Result<void> PlanJournal::add(const std::string& candidate, const PlanVerdict& verdict) {
  std::string line = line_of(candidate, verdict);
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() ||
      std::fflush(file_.get()) != 0)
    return file_error("write", path_);
  return {};
}

}  // namespace meshard
