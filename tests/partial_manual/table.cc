// Compares every op inside partial manual regions, with each operand split in every way over the
// automatic axes, also in branches and loops that only some of the devices run, with its unsharded
// value. The compiler may end the process or wait forever, so that child processes run the cases.
//
// usage: partial_manual_table [--op NAME] [--every N] [--more N] [--group N] [--place N]
//                             [--around N] [--seed N] [--verbose]
// MESHARD_NIGHTLY=1: all cases, whatever --every says.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <thread>

#include "meshard/meshard.h"
#include "meshard/pjrt/plugin_search.h"
#include "tests/partial_manual/cases.h"

namespace meshard::partial_manual {
namespace {

struct Options {
  std::string op;
  std::size_t every = 1;  // of the groups of splits, the n-th ones
  std::size_t more = 4;
  std::size_t group = 8;
  int place = -1, around = -1;
  bool verbose = false;
  std::uint64_t seed = 43;
};

enum class Verdict { kRight, kRefused, kWrong, kEnded, kHung };
constexpr const char* kVerdicts[] = {"right", "refused", "wrong", "ended", "hung"};

struct Outcome {
  Verdict verdict = Verdict::kEnded;
  std::string reason = {};
};

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.substr(0, 300);
}

Outcome of_error(const Error& error) {
  bool by_compiler = error.code() == ErrorCode::kInternal ||
                     std::string(error.what()).find("PJRT_") != std::string::npos;
  return {by_compiler ? Verdict::kWrong : Verdict::kRefused, one_line(error.what())};
}

// Runs the case here, and writes `V reason` for each split.
void run_here(const Case& all, std::FILE* out) {
  std::vector<Outcome> outcomes;
  try {
    for (const std::string& wrong : run(all))
      outcomes.push_back({wrong.empty() ? Verdict::kRight : Verdict::kWrong, one_line(wrong)});
  } catch (const Error& error) {
    outcomes.assign(all.splits.size(), of_error(error));
  }
  for (const Outcome& each : outcomes)
    std::fprintf(out, "%d %s\n", static_cast<int>(each.verdict), each.reason.c_str());
  std::fflush(out);
}

// A child that runs cases until it ends.
class Child {
 public:
  explicit Child(std::span<const Case> cases) {
    int ends[2];
    if (::pipe(ends) != 0) throw InternalError("no pipe");
    std::cout.flush();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      if (!std::freopen("/dev/null", "w", stderr)) ::_exit(3);
      std::FILE* out = ::fdopen(ends[1], "w");
      for (const Case& each : cases) run_here(each, out);
      ::_exit(0);
    }
    ::close(ends[1]);
    in_ = ::fdopen(ends[0], "r");
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    std::fclose(in_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The outcomes of the next case; fewer than it has splits if the child ended or hangs.
  std::vector<Outcome> next(std::size_t splits) {
    std::vector<Outcome> outcomes;
    char line[512];
    while (outcomes.size() < splits && wait() && std::fgets(line, sizeof line, in_)) {
      std::string text(line);
      outcomes.push_back({static_cast<Verdict>(text[0] - '0'), text.substr(2, text.size() - 3)});
    }
    return outcomes;
  }
  bool timed_out() const { return timed_out_; }

 private:
  bool wait() {
    if (timed_out_) return false;
    fd_set set;
    FD_ZERO(&set);
    FD_SET(::fileno(in_), &set);
    timeval limit{600, 0};
    if (buffered()) return true;
    timed_out_ = ::select(::fileno(in_) + 1, &set, nullptr, nullptr, &limit) == 0;
    return !timed_out_;
  }
  bool buffered() const { return in_->_IO_read_ptr < in_->_IO_read_end; }

  pid_t pid_ = 0;
  std::FILE* in_ = nullptr;
  bool timed_out_ = false;
};

class Table {
 public:
  explicit Table(Options options) : options_(std::move(options)) {}

  int run() {
    const std::vector<std::string> subjects = all_subjects();
    auto chosen = [&](const std::string& op) {
      return options_.op.empty() || op == options_.op || op.starts_with(options_.op + ":");
    };
    if (std::none_of(subjects.begin(), subjects.end(), chosen))
      return std::printf("no op is called %s\n", options_.op.c_str()), 2;
    for (const std::string& op : subjects)
      if (chosen(op)) run_op(op);
    for (const auto& [text, count] : reasons_) std::printf("  %5d  %s\n", count, text.c_str());
    int right = totals_[0] + totals_[1], failed = totals_[2] + totals_[3] + totals_[4];
    for (std::size_t v = 0; v < 5; ++v)
      std::printf("%s %d%s", kVerdicts[v], totals_[v], v < 4 ? ", " : "\n");
    std::printf("%d passed, %d failed\n", right, failed);
    return failed ? 1 : 0;
  }

 private:
  std::vector<Case> cases_of(const std::string& op) {
    std::vector<Case> cases;
    const std::vector<Subject> subjects = subjects_of(op, options_.seed);
    for (const Subject& subject : subjects)
      for (std::size_t p = 0; p < places().size(); ++p) {
        if (options_.place >= 0 && p != static_cast<std::size_t>(options_.place)) continue;
        std::vector<Split> splits;
        for (int around = 0; around < 3; ++around) {
          if (options_.around >= 0 && around != options_.around) continue;
          // A collective in a branch that varies over its axis is an error.
          if (subject.exchanges && around > 0) continue;
          if (splits.empty())
            splits = splits_of(subject, places()[p], options_.more, options_.seed + p);
          for (std::size_t from = 0; from < splits.size(); from += options_.group) {
            if (next_++ % options_.every != 0) continue;
            auto first = splits.begin() + static_cast<std::ptrdiff_t>(from);
            auto last = splits.begin() +
                        static_cast<std::ptrdiff_t>(std::min(from + options_.group, splits.size()));
            cases.push_back({subject, places()[p], static_cast<Around>(around), {first, last}});
          }
        }
      }
    return cases;
  }

  void run_op(const std::string& op) {
    if (std::string_view reason = left_out(op); !reason.empty())
      return void(std::printf("%-24s left out: %s\n", op.c_str(), std::string(reason).c_str()));
    std::fill(std::begin(counts_), std::end(counts_), 0);
    run_all(cases_of(op));
    std::printf("%-24s", op.c_str());
    for (std::size_t v = 0; v < 5; ++v) {
      std::printf("  %s %d", kVerdicts[v], counts_[v]);
      totals_[v] += counts_[v];
    }
    std::printf("\n");
    std::fflush(stdout);
  }

  // A case that is not right as a whole is run again, one split at a time.
  void run_all(std::vector<Case> cases) {
    std::size_t next = 0;
    while (next < cases.size()) {
      Child child(std::span<const Case>(cases).subspan(next));
      for (; next < cases.size(); ++next) {
        const Case& each = cases[next];
        std::vector<Outcome> outcomes = child.next(each.splits.size());
        bool complete = outcomes.size() == each.splits.size();
        bool by_case = complete && outcomes[0].verdict != Verdict::kRight && each.splits.size() > 1;
        if (complete && !by_case)
          for (std::size_t s = 0; s < outcomes.size(); ++s) add(each, s, outcomes[s]);
        else if (each.splits.size() > 1)
          run_all(one_by_one(each));
        else if (!complete)
          add(each, 0, {child.timed_out() ? Verdict::kHung : Verdict::kEnded});
        if (!complete) break;
      }
      ++next;
    }
  }

  static std::vector<Case> one_by_one(const Case& all) {
    std::vector<Case> alone;
    for (const Split& split : all.splits)
      alone.push_back({all.subject, all.place, all.around, {split}});
    return alone;
  }

  void add(const Case& all, std::size_t split, const Outcome& outcome) {
    ++counts_[static_cast<std::size_t>(outcome.verdict)];
    if (outcome.verdict == Verdict::kRight) return;
    if (outcome.verdict == Verdict::kRefused)
      ++reasons_[cat("refused ", all.subject.op, ": ", outcome.reason.substr(0, 160))];
    if (options_.verbose || outcome.verdict != Verdict::kRefused)
      std::printf("%s: %s: %s\n", kVerdicts[static_cast<std::size_t>(outcome.verdict)],
                  all.name(split).c_str(), outcome.reason.c_str());
    std::fflush(stdout);
  }

  Options options_;
  std::size_t next_ = 0;
  int counts_[5] = {}, totals_[5] = {};
  std::map<std::string, int> reasons_;
};

// A device that waits in vain for another one ends the process after this time, if the plugin knows
// the flag: it ends the process of whoever gives it an unknown one.
void end_soon(const std::string& plugin) {
  constexpr std::string_view kFlag = "xla_cpu_collective_call_terminate_timeout_seconds";
  std::string text(std::filesystem::file_size(plugin), '\0');
  std::ifstream(plugin, std::ios::binary)
      .read(text.data(), static_cast<std::streamsize>(text.size()));
  if (text.find(kFlag) == std::string::npos) return;
  std::string flags = std::getenv("XLA_FLAGS") ? std::getenv("XLA_FLAGS") : "";
  ::setenv("XLA_FLAGS", cat(flags, " --", kFlag, "=40").c_str(), 1);
}

int start(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--verbose") {
      options.verbose = true;
      continue;
    }
    if (i + 1 == argc) return std::puts("a value is missing"), 2;
    std::string value = argv[++i];
    if (word == "--op")
      options.op = value;
    else if (word == "--every")
      options.every = std::stoul(value);
    else if (word == "--more")
      options.more = std::stoul(value);
    else if (word == "--group")
      options.group = std::stoul(value);
    else if (word == "--place")
      options.place = std::stoi(value);
    else if (word == "--around")
      options.around = std::stoi(value);
    else if (word == "--seed")
      options.seed = std::stoull(value);
    else
      return std::printf("unknown option %s\n", word.c_str()), 2;
  }
  auto plugin = pjrt::find_plugins().first("cpu");
  if (!plugin.ok()) return std::puts("no plugin\n0 passed, 0 failed, 1 skipped"), 0;
  end_soon(*plugin);
  if (std::getenv("MESHARD_NIGHTLY")) options.every = 1;
  return Table(options).run();
}

}  // namespace
}  // namespace meshard::partial_manual

int main(int argc, char** argv) {
  ::setenv("MESHARD_PROGRAM_CACHE_MB", "0", 0);
  return meshard::partial_manual::start(argc, argv);
}
