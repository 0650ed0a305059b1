// The words for processes in messages, and numbers in texts.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "meshard/base/result.h"

namespace meshard::internal {

/// `process 2 (pid 4711 on alpha)`
std::string member_text(int rank, std::string_view host, int pid);

/// `; it was last in "all-reduce %12, train.cc:42", 3.2 s ago`; empty without activity.
std::string activity_text(std::string_view activity, std::chrono::milliseconds age);

/// `3.2 s`
std::string seconds_text(std::chrono::milliseconds time);

/// Reads a whole number: a process id, a count.
/// @error invalid argument
Result<std::int64_t> read_number(std::string_view text);

}  // namespace meshard::internal
