// Tested in tests/processes/check_publish.py.
#include "meshard/io/internal/joint_step.h"

#include <numeric>
#include <optional>
#include <utility>

#include "meshard/base/awaiting.h"
#include "meshard/base/cat.h"
#include "meshard/base/environment.h"
#include "meshard/base/packed_fields.h"
#include "meshard/processes/processes.h"

namespace meshard::io::internal {
namespace {

// What a process says, or process 0 has decided; or an error.
struct Said {
  std::string text = {};
  std::optional<std::pair<int, std::string>> failure = {};  // its code and message
  std::vector<std::string> notes = {};
  MESHARD_FIELDS(text, failure, notes)

  static Said of(const Result<std::string>& result) {
    if (result.ok()) return {*result, {}, {}};
    const Error& error = result.error();
    return {{}, {{static_cast<int>(error.code()), error.message()}}, error.notes()};
  }
  Result<std::string> result() && {
    if (!failure) return std::move(text);
    Error error(static_cast<ErrorCode>(failure->first), failure->second);
    for (std::string& note : notes) error = error.with_note(std::move(note));
    return error;
  }
};

Result<Said> said_at(const Processes& run, const std::string& key) {
  MESHARD_ASSIGN_OR_RETURN(std::string bytes, run.store().get(key));
  return from_packed<Said>(bytes, "step of all processes");
}

// Process 0: reads what all have said, and decides.
Result<std::string> decide_here(
    const Processes& run, const std::string& keys,
    const std::function<Result<std::string>(const std::vector<std::string>& said)>& decide) {
  std::vector<std::string> all;
  for (int rank = 0; rank < run.size(); ++rank) {
    MESHARD_ASSIGN_OR_RETURN(Said said, said_at(run, cat(keys, rank)));
    Result<std::string> text = std::move(said).result();
    if (!text.ok() && run.size() > 1)
      return text.error().with_note(
          cat("in ", run.members()[static_cast<std::size_t>(rank)].to_string()));
    if (!text.ok()) return text;
    all.push_back(*std::move(text));
  }
  return decide(all);
}

}  // namespace

Result<void> meet_all(const std::string& name, const std::string& what, SourceLocation where) {
  const Processes run = processes();
  MESHARD_ASSIGN_OR_RETURN(std::int64_t seconds,
                           environment_integer("MESHARD_PROCESS_WAIT_SECONDS", 600, 1, 1'000'000));
  std::vector<int> all(static_cast<std::size_t>(run.size()));
  std::iota(all.begin(), all.end(), 0);
  std::optional<meshard::internal::AwaitingScope> awaiting;
  if (std::chrono::seconds(seconds) > meshard::internal::kShortWait)
    awaiting.emplace(meshard::internal::Awaiting{cat(what, where.known() ? cat(" at ", where) : ""),
                                                 {{name, 1, std::move(all)}}});
  Result<void> met = run.barrier(name, std::chrono::seconds(seconds), where);
  if (met.ok()) return met;
  return met.error().with_note(cat("in the ", what, ", which all processes of the run must do"));
}

Result<std::string> decide_jointly(
    const std::string& name, const std::string& what, const std::string& keys,
    const Result<std::string>& own,
    const std::function<Result<std::string>(const std::vector<std::string>& said)>& decide,
    SourceLocation where) {
  // The keys are used again by each step: a process says something only after the step before, and
  // process 0 has read everything by then.
  const Processes run = processes();
  MESHARD_RETURN_IF_ERROR(run.store().put(cat(keys, run.rank()), to_packed(Said::of(own))));
  MESHARD_RETURN_IF_ERROR(meet_all(name, what, where));
  const std::string decision = keys + "decision";
  if (run.rank() == 0)
    MESHARD_RETURN_IF_ERROR(
        run.store().put(decision, to_packed(Said::of(decide_here(run, keys, decide)))));
  MESHARD_RETURN_IF_ERROR(run.barrier(cat(name, ": decided"), kNoTimeLimit, where));
  MESHARD_ASSIGN_OR_RETURN(Said said, said_at(run, decision));
  return std::move(said).result();
}

}  // namespace meshard::io::internal
