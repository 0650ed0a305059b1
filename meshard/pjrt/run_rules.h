// How plugins learn that they are one of several processes, by platform.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/pjrt/named_value.h"

namespace meshard::pjrt {

/// A value: the processes of a run. The lists are by rank.
struct RunMembers {
  /// The rank of this process.
  int rank = 0;
  /// The machine of each process.
  std::vector<std::string> hosts;
  /// How many devices of its machine each process has, if several processes share the machine.
  std::vector<int> local_devices;

  int size() const { return static_cast<int>(hosts.size()); }
  /// How many processes are on the machine of this one.
  int on_this_host() const;
};

/// The options that `platform`'s plugin needs besides `given` to create a client together with the
/// other processes; those in `given` win. None for a run of one process, for platforms that take no
/// such options, and if `given` has one of node_id and num_nodes.
/// @param sees_own_devices the environment already limits which devices this process sees
std::vector<NamedValue> options_for_run(std::string_view platform, const RunMembers& run,
                                        std::span<const NamedValue> given, bool sees_own_devices);

/// The environment variables from which `platform`'s plugin learns of the other processes. Only
/// those that are not set may be set, before the plugin is loaded.
std::vector<std::pair<std::string, std::string>> variables_for_run(std::string_view platform,
                                                                   const RunMembers& run);

}  // namespace meshard::pjrt
