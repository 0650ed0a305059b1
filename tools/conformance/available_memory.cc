#include "tools/conformance/available_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

namespace meshard::conformance {
namespace {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

// The number in a file of one number; `max`, and a file that is not there, mean no limit.
std::int64_t limit_in(const std::filesystem::path& file) {
  std::int64_t limit = 0;
  return std::ifstream(file) >> limit ? limit : kUnlimited;
}

// The smallest limit of the cgroup `path` under `root` and of those around it.
std::int64_t limit_of_groups(const std::filesystem::path& root, std::filesystem::path path,
                             const char* file) {
  std::int64_t limit = limit_in(root / file);
  for (; path.has_relative_path(); path = path.parent_path())
    limit = std::min(limit, limit_in(root / path.relative_path() / file));
  return limit;
}

std::int64_t limit_of_cgroups() {
  std::int64_t limit = kUnlimited;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // `4:memory:/a/b`, `0::/a/b`
    std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::string kinds = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (kinds == "memory")
      limit =
          std::min(limit, limit_of_groups("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"));
    else if (kinds.empty())
      limit = std::min(limit, limit_of_groups("/sys/fs/cgroup", path, "memory.max"));
  }
  return limit;
}

std::int64_t free_memory() {
  std::ifstream facts("/proc/meminfo");
  for (std::string line; std::getline(facts, line);)  // `MemAvailable:   12345 kB`
    if (line.starts_with("MemAvailable:")) return std::stoll(line.substr(13)) * 1024;
  return kUnlimited;
}

std::int64_t data_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_DATA, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  return static_cast<std::int64_t>(limit.rlim_cur);
}

}  // namespace

std::int64_t available_memory() {
  return std::min({free_memory(), limit_of_cgroups(), data_limit()});
}

}  // namespace meshard::conformance
