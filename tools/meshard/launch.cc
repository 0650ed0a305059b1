// meshard launch: starts the processes of a run on this machine, and starts them again after a
// loss.
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "meshard/base/cat.h"
#include "tools/meshard/subcommands.h"
#include "tools/meshard/supervisor.h"

namespace meshard::tool {
namespace {

constexpr int kNotStarted = 2;

/// A mesh axis that may become shorter: `data=4`.
struct Axis {
  std::string name;
  int size = 0;
};

struct LaunchOptions {
  int processes = 0;
  int restarts = 0;
  std::optional<int> least;
  std::string shrink;
  double grace = 5;
  std::vector<std::string> command;
};

/// How many processes an attempt may have.
struct Sizes {
  int least;       ///< no fewer
  int step = 1;    ///< a multiple of this
  Axis axis = {};  ///< empty: not named
  /// Positions of the axis for each `step` processes.
  int rows = 1;

  /// After a loss of `lost` of `count` processes.
  int after(int count, int lost) const {
    const int left = (count - lost) / step * step;
    return std::min(count, std::max(left, least));
  }
  std::string axis_text(int from, int to) const {
    if (axis.name.empty() || from == to) return "";
    return cat(", axis ", axis.name, " of ", to / step * rows, " instead of ", from / step * rows);
  }
};

void say(const std::string& text) {
  std::fprintf(stderr, "meshard launch: %s\n", text.c_str());
  std::fflush(stderr);
}

std::optional<Axis> parse_axis(const std::string& text) {
  const std::size_t at = text.find('=');
  if (at == 0 || at == std::string::npos) return std::nullopt;
  Axis axis{.name = text.substr(0, at)};
  const char *begin = text.data() + at + 1, *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(begin, end, axis.size);
  if (error != std::errc() || stop != end || axis.size < 1) return std::nullopt;
  return axis;
}

/// What is wrong with the options, or the sizes that they allow.
Result<Sizes> sizes_of(const LaunchOptions& options) {
  const auto wrong = [](std::string text) { return Error(ErrorCode::kInvalidArgument, text); };
  if (options.command.empty())
    return wrong(
        "no program: it comes after --, as in `meshard launch -n 4 -- ./train --rate 0.1`");
  if (options.restarts == 0 && (options.least || !options.shrink.empty()))
    return wrong("--min-processes and --shrink have no effect without --restarts");
  const int all = options.processes;
  if (options.least && *options.least > all)
    return wrong(cat("--min-processes ", *options.least, " is more than -n ", all));
  Sizes sizes{.least = options.least.value_or(all)};
  if (options.shrink.empty()) return sizes;
  std::optional<Axis> axis = parse_axis(options.shrink);
  if (!axis)
    return wrong(cat("--shrink ", options.shrink, " is not an axis and its size, as in data=4"));
  if (all % axis->size != 0 && axis->size % all != 0)
    return wrong(cat("--shrink ", options.shrink, ": ", all,
                     " processes cannot be divided evenly by ", "an axis of ", axis->size));
  sizes.axis = *axis;
  sizes.step = std::max(1, all / axis->size);
  sizes.rows = std::max(1, axis->size / all);
  sizes.least = (options.least.value_or(1) + sizes.step - 1) / sizes.step * sizes.step;
  return sizes;
}

/// A folder of this user for the sockets of a run, which is removed at the end.
class SocketFolder {
 public:
  SocketFolder() {
    std::error_code ignored;
    std::string path = std::filesystem::temp_directory_path(ignored).string();
    constexpr std::size_t kLongest = 60;  // the path of a socket has at most 107 characters
    if (path.empty() || path.size() > kLongest) path = "/tmp";
    path += "/meshard-launch-XXXXXX";
    if (::mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~SocketFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

int launch(const LaunchOptions& options) {
  Result<Sizes> sizes = sizes_of(options);
  if (!sizes.ok()) {
    say(sizes.error().message());
    return kNotStarted;
  }
  SocketFolder folder;
  if (folder.path().empty()) {
    say("cannot make a folder for a socket in the temporary folder");
    return kNotStarted;
  }
  Attempt attempt{.command = options.command,
                  .count = options.processes,
                  .grace = std::chrono::milliseconds(static_cast<int>(options.grace * 1000))};
  while (true) {
    attempt.address = cat(folder.path(), "/", attempt.number);
    Result<AttemptEnd> ended = supervise(attempt);
    if (!ended.ok()) {
      say(ended.error().message());
      return kNotStarted;
    }
    if (ended->signal != 0) say(cat("ended by signal ", ended->signal));
    if (ended->lost.empty()) return ended->status;
    say(ended->what);
    if (attempt.number == options.restarts) {
      if (options.restarts > 0) say(cat("gives up after restart ", options.restarts));
      return ended->status;
    }
    const int count = sizes->after(attempt.count, static_cast<int>(ended->lost.size()));
    ++attempt.number;
    say(cat("restart ", attempt.number, " of ", options.restarts, " with ", count,
            count == 1 ? " process" : " processes", sizes->axis_text(attempt.count, count)));
    attempt.count = count;
  }
}

}  // namespace

std::vector<std::string> split_program(int& argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  if (argc < 2 || words[1] != "launch") return {};
  auto mark = std::find(words.begin(), words.end(), "--");
  if (mark == words.end()) return {};
  argc = static_cast<int>(mark - words.begin());
  return {mark + 1, words.end()};
}

void add_launch(CLI::App& app, int& exit_code, std::vector<std::string> program) {
  auto options = std::make_shared<LaunchOptions>();
  options->command = std::move(program);
  CLI::App* command = app.add_subcommand(
      "launch",
      "Starts the processes of a run on this machine, and again after a loss: `meshard launch -n 4 "
      "--restarts 3 -- ./train --rate 0.1`");
  command->add_option("-n,--processes", options->processes, "number of processes")
      ->required()
      ->check(CLI::Range(1, 65536));
  command
      ->add_option("--restarts", options->restarts,
                   "how often all processes are started again after a loss; default: 0")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--min-processes", options->least,
                   "after a loss, go on with those that are left, but with at least so many; "
                   "default: with as many as before")
      ->check(CLI::PositiveNumber);
  command->add_option(
      "--shrink", options->shrink,
      "AXIS=SIZE, a mesh axis that may become shorter: after a loss, go on with as many processes "
      "as whole positions of the axis need (by default at least one position)");
  command
      ->add_option(
          "--grace", options->grace,
          "seconds between SIGTERM, or a signal that is passed on, and SIGKILL; default: 5")
      ->check(CLI::Range(0.0, 86400.0));
  command->footer(
      "A restarted program continues from its last checkpoint if it restores one at its start:\n"
      "  if (io::has_checkpoint(path).value()) state = io::restore(path, state).value();\n"
      "Exit code: 0, that of the first process that failed, or 128 + its signal; 2 if the program\n"
      "cannot be started. MESHARD_LAUNCH_ATTEMPT is the number of restarts before.");
  command->callback([options, &exit_code] { exit_code = launch(*options); });
}

}  // namespace meshard::tool
