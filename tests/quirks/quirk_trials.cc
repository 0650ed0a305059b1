// Which quirks the CPU plugin still needs: runs the program of every row with the quirk turned off,
// in a process of its own, because it may end or hang.
//
// usage: quirk_trials [NAME...]    the rows; default: all
//        quirk_trials --here NAME  runs one program in this process, as MESHARD_QUIRKS says
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/quirks/trial.h"

namespace meshard::quirk_trials {
namespace {

constexpr int kWrong = 1, kThrew = 3;

std::optional<Quirk> quirk_named(std::string_view name) {
  std::span<const QuirkRow> rows = quirk_table();
  auto row = std::ranges::find(rows, name, &QuirkRow::name);
  if (row == rows.end()) return std::nullopt;
  return static_cast<Quirk>(row - rows.begin());
}

int run_here(Quirk quirk) {
  try {
    Trial trial = trial_of(quirk);
    if (trial.is_timed) return std::printf("%.9f\n", seconds_of(trial)), 0;
    return is_right(trial) ? 0 : kWrong;
  } catch (const std::exception& error) {
    return std::printf("%.300s\n", error.what()), kThrew;
  }
}

struct Outcome {
  std::string verdict;  // `right`, `wrong`, `ended by signal 6`, ...
  std::string output;
};

// This program again, for one row, with this value of MESHARD_QUIRKS.
Outcome run_in_child(std::string_view name, const std::string& quirks) {
  constexpr std::chrono::seconds kLimit{150};
  int ends[2];
  if (::pipe(ends) != 0) return {"no pipe", ""};
  pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    if (FILE* none = std::fopen("/dev/null", "w")) ::dup2(::fileno(none), STDERR_FILENO);
    ::setenv("MESHARD_QUIRKS", quirks.c_str(), 1);
    ::alarm(static_cast<unsigned>(kLimit.count()));
    ::execl("/proc/self/exe", "quirk_trials", "--here", std::string(name).c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  Outcome outcome;
  char buffer[512];
  for (ssize_t n; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    outcome.output.append(buffer, static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status))
    outcome.verdict =
        WTERMSIG(status) == SIGALRM ? "hangs" : cat("ends by signal ", WTERMSIG(status));
  else
    outcome.verdict = WEXITSTATUS(status) == 0        ? "right"
                      : WEXITSTATUS(status) == kWrong ? "wrong values"
                                                      : "an error";
  return outcome;
}

// One line; whether the quirk is needed.
bool report(Quirk quirk) {
  const QuirkRow& row = row_of(quirk);
  std::string name(row.name), without = "-" + name;
  if (std::optional<Quirk> other = trial_of(quirk).also_off)
    append(without, cat(",-", row_of(*other).name));
  Outcome on = run_in_child(row.name, ""), off = run_in_child(row.name, without);
  if (on.verdict != "right")
    std::printf("%-22s FAILED with the quirk on: %s %s\n", name.c_str(), on.verdict.c_str(),
                on.output.c_str());
  bool needed = off.verdict != "right";
  std::string how = off.verdict;
  if (row.only_slow && !needed) {
    double slower = std::atof(off.output.c_str()) / std::atof(on.output.c_str());
    needed = slower > 1.2;
    char text[64];
    std::snprintf(text, sizeof text, "takes %.2f times as long", slower);
    how = text;
  }
  std::replace(off.output.begin(), off.output.end(), '\n', ' ');
  std::printf("%-22s %s: %s without it%s%s\n", name.c_str(), needed ? "needed" : "NO LONGER NEEDED",
              how.c_str(), off.verdict == "an error" ? ": " : "",
              off.verdict == "an error" ? off.output.c_str() : "");
  std::fflush(stdout);
  return needed;
}

int start(int argc, char** argv) {
  std::vector<std::string_view> names(argv + 1, argv + argc);
  bool here = !names.empty() && names[0] == "--here";
  if (here) names.erase(names.begin());
  std::vector<Quirk> quirks;
  for (std::string_view name : names) {
    auto quirk = quirk_named(name);
    if (!quirk) return std::printf("there is no quirk %s\n", std::string(name).c_str()), 2;
    quirks.push_back(*quirk);
  }
  if (here) return run_here(quirks.at(0));
  if (quirks.empty())
    for (std::size_t i = 0; i < quirk_table().size(); ++i) quirks.push_back(static_cast<Quirk>(i));
  int needed = 0;
  for (Quirk quirk : quirks) needed += report(quirk);
  std::printf("%d of %zu quirks are needed by this plugin\n", needed, quirks.size());
  return 0;
}

}  // namespace
}  // namespace meshard::quirk_trials

int main(int argc, char** argv) {
  ::setenv("MESHARD_PROGRAM_CACHE_MB", "0", 0);
  ::setenv("TF_CPP_MIN_LOG_LEVEL", "3", 0);
  return meshard::quirk_trials::start(argc, argv);
}
