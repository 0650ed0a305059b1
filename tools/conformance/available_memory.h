// How much memory this process may use.
#pragma once
#include <cstdint>

namespace meshard::conformance {

/// The bytes that a process started now may use at most: the smallest of the machine's available
/// memory, the limits of its cgroups (both versions) and RLIMIT_DATA. Limits that cannot be read do
/// not count.
std::int64_t available_memory();

}  // namespace meshard::conformance
