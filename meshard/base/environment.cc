#include "meshard/base/environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "meshard/base/cat.h"
#include "meshard/base/near_names.h"

namespace meshard {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"off", "error", "warning", "info"};
constexpr int kNotSet = -1;
constinit std::atomic<int> the_level{kNotSet};

std::string_view variable() {
  const char* text = std::getenv("MESHARD_LOG");
  return text ? text : "";
}

}  // namespace

std::string_view to_string(LogLevel level) { return kNames[static_cast<std::size_t>(level)]; }

Result<LogLevel> parse_log_level(std::string_view text) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == text) return static_cast<LogLevel>(i);
  return Error(ErrorCode::kInvalidArgument,
               cat("[log] invalid level \"", text, "\": use off, error, warning or info"));
}

LogLevel log_level() {
  if (int level = the_level.load(std::memory_order_relaxed); level != kNotSet)
    return static_cast<LogLevel>(level);
  return parse_log_level(variable()).value_or(LogLevel::kError);
}

void set_log_level(LogLevel level) { the_level = static_cast<int>(level); }

Result<void> check_log_variable() {
  if (variable().empty()) return {};
  Result<LogLevel> level = parse_log_level(variable());
  if (level.ok()) return {};
  return Error(ErrorCode::kInvalidArgument, cat("[environment] MESHARD_LOG is '", variable(),
                                                "': expected off, error, warning or info"));
}

namespace {

// The variables of docs/guides/environment.md that begin with MESHARD_, without those of CMake;
// `./dev lint` compares the two lists.
constexpr const char* kVariables[] = {"MESHARD_ACROSS_PROGRAMS",
                                      "MESHARD_ACROSS_TEST",
                                      "MESHARD_ADVICE",
                                      "MESHARD_BROWSER",
                                      "MESHARD_CACHE",
                                      "MESHARD_CHAINS",
                                      "MESHARD_CHECKPOINT_KILLS",
                                      "MESHARD_CHECKPOINT_TEST",
                                      "MESHARD_CHECK_HOST_DATA",
                                      "MESHARD_CHECK_NANS",
                                      "MESHARD_COLLECTIVES",
                                      "MESHARD_COMPILE",
                                      "MESHARD_COMPILED_CACHE_MB",
                                      "MESHARD_CPU_DEVICES",
                                      "MESHARD_ENDS",
                                      "MESHARD_EXAMPLES",
                                      "MESHARD_FABRIC_TEST",
                                      "MESHARD_FAKE_DEVICES",
                                      "MESHARD_FAKE_ON_COMPILE",
                                      "MESHARD_FAKE_ON_CREATE",
                                      "MESHARD_FAKE_PLATFORM",
                                      "MESHARD_FAULT",
                                      "MESHARD_FAULTY_AS",
                                      "MESHARD_FAULTY_PLUGIN",
                                      "MESHARD_GLOO_LIBRARY",
                                      "MESHARD_IN_JAX_ENVIRONMENT",
                                      "MESHARD_JOBS",
                                      "MESHARD_KILLS",
                                      "MESHARD_LAPACK_LIBRARY",
                                      "MESHARD_LAUNCH_ATTEMPT",
                                      "MESHARD_LAUNCH_KILLS",
                                      "MESHARD_LOG",
                                      "MESHARD_LOOPS",
                                      "MESHARD_MOST_PROGRAMS",
                                      "MESHARD_MPI_LIBRARY",
                                      "MESHARD_NIGHTLY",
                                      "MESHARD_PIPELINES",
                                      "MESHARD_PLATFORM",
                                      "MESHARD_PLUGIN",
                                      "MESHARD_PLUGIN_LOG",
                                      "MESHARD_PLUGIN_TEST",
                                      "MESHARD_PROCESS_ADDRESS",
                                      "MESHARD_PROCESS_COUNT",
                                      "MESHARD_PROCESS_KILLS",
                                      "MESHARD_PROCESS_RANK",
                                      "MESHARD_PROCESS_SECRET",
                                      "MESHARD_PROCESS_SILENCE_SECONDS",
                                      "MESHARD_PROCESS_WAIT_SECONDS",
                                      "MESHARD_PROGRAMS",
                                      "MESHARD_PROGRAM_CACHE_MB",
                                      "MESHARD_PROGRAM_COUNT",
                                      "MESHARD_PROGRAM_DEVICES",
                                      "MESHARD_PROGRAM_FAILURES",
                                      "MESHARD_PROGRAM_KIND",
                                      "MESHARD_PROGRAM_PLATFORMS",
                                      "MESHARD_PUBLISH_SECRET",
                                      "MESHARD_PUBLISH_TEST",
                                      "MESHARD_PYTHON_JAX",
                                      "MESHARD_PYTHON_TORCH",
                                      "MESHARD_QUIRKS",
                                      "MESHARD_STALL_SECONDS",
                                      "MESHARD_TEST_COMPILER",
                                      "MESHARD_TEST_LAUNCHER",
                                      "MESHARD_TEST_PLUGINS",
                                      "MESHARD_TEST_SECOND_PLUGIN",
                                      "MESHARD_TEST_SEED",
                                      "MESHARD_TEST_TORCHRUN",
                                      "MESHARD_TRUST_FILES",
                                      "MESHARD_WHEEL_DIR"};

// MESHARD_PLUGIN_<TYPE>, the path of the plugin of any device type.
bool names_plugin(std::string_view name, std::string_view value) {
  return name.starts_with("MESHARD_PLUGIN_") && value.find_first_of("/.") != std::string_view::npos;
}

template <class Number>
Result<Number> read(const char* name, Number otherwise, Number least, Number most,
                    std::string_view kind) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  std::string_view digits(text);
  Number number{};
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  // `not` also refuses NaN.
  if (error != std::errc() || end != digits.data() + digits.size() ||
      !(number >= least && number <= most))
    return Error(ErrorCode::kInvalidArgument,
                 cat("[environment] ", name, " is '", digits, "': expected a ", kind, " from ",
                     least, " to ", most));
  return number;
}

}  // namespace

Result<std::int64_t> environment_integer(const char* name, std::int64_t otherwise,
                                         std::int64_t least, std::int64_t most) {
  return read(name, otherwise, least, most, "whole number");
}

Result<double> environment_number(const char* name, double otherwise, double least, double most) {
  return read(name, otherwise, least, most, "number");
}

std::vector<std::string> unknown_variables(const char* const* environment) {
  const std::vector<std::string> known(std::begin(kVariables), std::end(kVariables));
  std::vector<std::string> lines;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view text(*environment), name = text.substr(0, text.find('='));
    if (!name.starts_with("MESHARD_") || std::ranges::find(known, name) != known.end() ||
        names_plugin(name, text.substr(name.size())))
      continue;
    lines.push_back(cat("[environment] ", name, " is set, but meshard reads no such variable; ",
                        nearest_text(name, near_names(name, known, 1))));
  }
  return lines;
}

void report_unknown_variables() {
  static std::once_flag once;
  if (log_level() == LogLevel::kOff) return;
  std::call_once(once, [] {
    for (const std::string& line : unknown_variables(environ))
      (void)std::fputs(cat("meshard: ", line, "\n").c_str(), stderr);
  });
}

Result<void> check_environment() {
  report_unknown_variables();
  MESHARD_RETURN_IF_ERROR(check_log_variable());
  MESHARD_RETURN_IF_ERROR(environment_integer("MESHARD_PLUGIN_LOG", 0, 0, 3));
  for (const char* name : {"MESHARD_ADVICE", "MESHARD_CHECK_NANS", "MESHARD_TRUST_FILES"})
    MESHARD_RETURN_IF_ERROR(environment_integer(name, 0, 0, 1));
  return {};
}

}  // namespace meshard
