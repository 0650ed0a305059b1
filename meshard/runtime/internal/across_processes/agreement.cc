#include "meshard/runtime/internal/across_processes/agreement.h"

#include <algorithm>
#include <map>
#include <optional>

#include "meshard/base/awaiting.h"
#include "meshard/base/cat.h"
#include "meshard/base/packed_fields.h"
#include "meshard/base/stall_report.h"
#include "meshard/runtime/internal/across_processes/shared_fabric.h"

namespace meshard {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// What a process says: its intention.
struct Said {
  std::string fingerprint, what;
  MESHARD_FIELDS(fingerprint, what)
};

// What the lowest process answers: the result, an error, or the question for the details.
struct Answer {
  int code = 0;  // of the error; 0: none
  std::string text;
  std::vector<std::string> notes = {};
  int asked = -1;  // the process that differs
  MESHARD_FIELDS(code, text, notes, asked)

  static Answer of(const Error& error) {
    return {static_cast<int>(error.code()), error.message(), error.notes()};
  }
  static Result<Answer> from_bytes(std::string_view bytes) {
    return from_packed<Answer>(bytes, "processes");
  }
  Result<std::string> result() && {
    if (code == 0) return std::move(text);
    Error error(static_cast<ErrorCode>(code), text);
    for (std::string& note : notes) error = error.with_note(std::move(note));
    return error;
  }
};

// Waits for a key. @error deadline exceeded without a message for users
Result<std::string> wait_for(Store& store, const std::string& key, steady_clock::time_point end,
                             const std::string& awaited) {
  internal::StallWatch watch;
  while (true) {
    auto left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now());
    milliseconds slice = std::max(milliseconds(1), std::min(left, watch.slice()));
    Result<std::string> got = store.get(key, slice);
    if (got.ok() || got.error().code() != ErrorCode::kDeadlineExceeded) return got;
    if (left <= milliseconds(0)) return got;
    if (watch.is_due()) internal::report_stall(awaited, watch.waited());
  }
}

struct Line {
  std::string_view op, source;
};

std::optional<Line> next_line(std::string_view& text) {
  if (text.empty()) return std::nullopt;
  std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  std::size_t tab = line.find('\t');
  if (tab == std::string_view::npos) return Line{line, {}};
  return Line{line.substr(0, tab), line.substr(tab + 1)};
}

std::string shown_line(const std::optional<Line>& line, int rank) {
  if (!line) return cat("nothing more in process ", rank);
  std::string_view op = line->op.substr(std::min(line->op.find_first_not_of(' '), line->op.size()));
  return cat('`', op, '`', line->source.empty() ? "" : cat(" at ", line->source), " in process ",
             rank);
}

// The first line in which two texts differ.
std::string first_difference(std::string_view a, int rank_a, std::string_view b, int rank_b) {
  while (true) {
    std::optional<Line> in_a = next_line(a), in_b = next_line(b);
    if (!in_a && !in_b) return "nothing that is shown differs";
    if (in_a && in_b && in_a->op == in_b->op) continue;
    return cat("the first difference is ", shown_line(in_a, rank_a), ", and ",
               shown_line(in_b, rank_b));
  }
}

// `processes 0 and 2 run "train" at train.cc:42; process 1 runs ...`
std::string who_does_what(const std::map<int, Said>& said) {
  std::vector<std::pair<const Said*, std::vector<int>>> groups;
  for (const auto& [rank, of_rank] : said) {
    const Said& each = of_rank;
    auto same = std::ranges::find_if(groups, [&each](const auto& group) {
      return group.first->fingerprint == each.fingerprint && group.first->what == each.what;
    });
    if (same == groups.end())
      groups.push_back({&each, {rank}});
    else
      same->second.push_back(rank);
  }
  std::string text;
  for (const auto& [each, ranks] : groups)
    append(text, cat(text.empty() ? "" : "; ", names_of_processes(ranks), ": ", each->what));
  return text;
}

Error late(const std::vector<int>& missing, const Intention& intention, milliseconds limit) {
  return Error(
      ErrorCode::kDeadlineExceeded,
      cat("[processes] ", names_of_processes(missing), missing.size() == 1 ? " has" : " have",
          " not come within ", limit.count() / 1000, " s to ", intention.what, ", which ",
          names_of_processes(intention.ranks), " must do together"));
}

// Decides for all processes; runs in the lowest one.
class Judge {
 public:
  Judge(Store& store, const Intention& intention, milliseconds limit)
      : store_(store), own_(intention), limit_(limit) {}

  Answer answer(const std::function<Result<std::string>()>& make_result) {
    if (Result<void> listened = listen(); !listened.ok()) return Answer::of(listened.error());
    for (const auto& [rank, said] : said_)
      if (said.fingerprint != own_.fingerprint.to_string()) return differ(rank);
    Result<std::string> made = [&]() -> Result<std::string> {
      try {
        return make_result();
      } catch (const Error& error) {
        return error;
      }
    }();
    if (!made.ok()) return Answer::of(made.error());
    return {.text = *std::move(made)};
  }

 private:
  Result<void> listen() {
    said_[own_.rank] = {own_.fingerprint.to_string(), own_.what};
    auto end = steady_clock::now() + limit_;
    std::vector<int> missing;
    for (int rank : own_.ranks) {
      if (rank == own_.rank) continue;
      Result<std::string> got = wait_for(store_, cat(own_.key, "/", rank), end,
                                         cat(names_of_processes({rank}), " to ", own_.what));
      if (!got.ok() && got.error().code() != ErrorCode::kDeadlineExceeded) return got.error();
      if (!got.ok()) {
        missing.push_back(rank);
        continue;
      }
      MESHARD_ASSIGN_OR_RETURN(said_[rank], from_packed<Said>(*got, "processes"));
    }
    if (missing.empty()) return {};
    return late(missing, own_, limit_);
  }

  Answer differ(int other) {
    Answer question{.text = {}, .asked = other};
    auto end = steady_clock::now() + limit_;
    Result<void> put = store_.put(cat(own_.key, "/answer"), to_packed(question));
    Result<std::string> theirs = put.ok() ? wait_for(store_, cat(own_.key, "/details"), end,
                                                     "the program of another process")
                                          : put.error();
    std::string difference = theirs.ok()
                                 ? first_difference(own_.details(), own_.rank, *theirs, other)
                                 : theirs.error().message();
    return Answer::of(Error(ErrorCode::kFailedPrecondition,
                            cat("[processes] the processes are about to do different things: ",
                                who_does_what(said_)))
                          .with_note(std::move(difference)));
  }

  Store& store_;
  const Intention& own_;
  milliseconds limit_;
  std::map<int, Said> said_;
};

// Waits for a key that the lowest process puts.
Result<std::string> hear(Store& store, const Intention& intention, const std::string& key,
                         steady_clock::time_point end, milliseconds limit) {
  std::vector<int> judge{intention.ranks.front()};
  Result<std::string> got =
      wait_for(store, key, end, cat(names_of_processes(judge), " to ", intention.what));
  if (got.ok() || got.error().code() != ErrorCode::kDeadlineExceeded) return got;
  return late(judge, intention, limit);
}

}  // namespace

Result<std::string> agree(Store& store, const Intention& intention,
                          const std::function<Result<std::string>()>& result, milliseconds limit) {
  std::optional<internal::AwaitingScope> awaiting;
  if (limit > internal::kShortWait)
    awaiting.emplace(
        internal::Awaiting{intention.what, {shared_step(intention.key, intention.ranks)}});
  if (intention.rank != intention.ranks.front()) {
    Said said{intention.fingerprint.to_string(), intention.what};
    MESHARD_RETURN_IF_ERROR(store.put(cat(intention.key, "/", intention.rank), to_packed(said)));
    // The lowest process may itself wait for `limit`.
    auto end = steady_clock::now() + 2 * limit;
    auto hear_it = [&](const char* what) {
      return hear(store, intention, cat(intention.key, what), end, 2 * limit);
    };
    MESHARD_ASSIGN_OR_RETURN(std::string bytes, hear_it("/answer"));
    MESHARD_ASSIGN_OR_RETURN(Answer answer, Answer::from_bytes(bytes));
    if (answer.asked < 0) return std::move(answer).result();
    if (answer.asked == intention.rank)
      MESHARD_RETURN_IF_ERROR(store.put(cat(intention.key, "/details"), intention.details()));
    MESHARD_ASSIGN_OR_RETURN(bytes, hear_it("/error"));
    MESHARD_ASSIGN_OR_RETURN(answer, Answer::from_bytes(bytes));
    return std::move(answer).result();
  }
  Answer answer = Judge(store, intention, limit).answer([&] {
    awaiting.reset();
    return result();
  });
  MESHARD_ASSIGN_OR_RETURN(std::optional<std::string> asked,
                           store.try_get(cat(intention.key, "/answer")));
  MESHARD_RETURN_IF_ERROR(
      store.put(cat(intention.key, asked ? "/error" : "/answer"), to_packed(answer)));
  if (!intention.announced_as.empty())
    MESHARD_RETURN_IF_ERROR(
        store.put(intention.announced_as, cat(intention.key, asked ? "/error" : "/answer")));
  return std::move(answer).result();
}

Result<void> announce(Store& store, const std::string& announced_as,
                      const Result<std::string>& result) {
  Answer answer = result.ok() ? Answer{.text = *result} : Answer::of(result.error());
  std::string key = announced_as + "/answer";
  MESHARD_RETURN_IF_ERROR(store.put(key, to_packed(answer)));
  return store.put(announced_as, key);
}

Result<std::string> result_of_others(Store& store, const Intention& intention, milliseconds limit) {
  auto end = steady_clock::now() + 2 * limit;
  internal::AwaitingScope awaiting({cat("the program of \"", intention.what, "\" from others"),
                                    {{intention.announced_as, 1, {intention.ranks.front()}}}});
  MESHARD_ASSIGN_OR_RETURN(std::string key,
                           hear(store, intention, intention.announced_as, end, 2 * limit));
  MESHARD_ASSIGN_OR_RETURN(std::string bytes, hear(store, intention, key, end, 2 * limit));
  MESHARD_ASSIGN_OR_RETURN(Answer answer, Answer::from_bytes(bytes));
  return std::move(answer).result();
}

}  // namespace meshard
