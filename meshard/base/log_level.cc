#include "meshard/base/log_level.h"

#include <array>
#include <atomic>
#include <cstdlib>

#include "meshard/base/cat.h"

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

}  // namespace meshard
