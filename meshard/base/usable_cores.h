// The number of cores that the process may use.
#pragma once
#include <sched.h>

namespace meshard::internal {

/// Those of the calling thread's affinity, which containers and `taskset` restrict; CPU_SETSIZE if
/// the machine has more than a cpu_set_t holds.
inline int usable_cores() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : CPU_SETSIZE;
}

}  // namespace meshard::internal
