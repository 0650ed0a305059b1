// The devices of all processes, for plugins that know only those of their own process.
#pragma once
#include <vector>

namespace meshard::pjrt {

/// A value: which devices a client has if several processes use such a plugin (the CPU plugin). Ids
/// count up from 0, process by process: process p has the counts[p] ids after those of the
/// processes before it. The devices of other processes are not addressable: no program or buffer of
/// this client can be on them.
struct ProcessDevices {
  /// The rank of this process.
  int process = 0;
  /// The number of devices of each process; at least 1 in this one.
  std::vector<int> counts;
};

}  // namespace meshard::pjrt
