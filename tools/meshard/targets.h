// Lists the hardware for which this machine can compile programs.
#pragma once
#include <chrono>
#include <string_view>

namespace meshard::tool {

/// Compiles a small program for one target of each platform, and prints what works and how to get
/// the rest. Returns the number of platforms that work.
int print_targets(std::chrono::seconds time_limit);

/// The same for one of `tpu`, `cuda`, `cpu`. Returns whether it works.
bool print_target(std::string_view platform, std::chrono::seconds time_limit);

}  // namespace meshard::tool
