// Rules for plugins in several processes: discovery, exchanged values, and the process of each
// device.
#pragma once
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/pjrt/named_value.h"

namespace meshard::pjrt {

/// The store behind the key-value callbacks of PJRT_Client_Create: plugins that communicate between
/// processes publish their devices there, and meet there before they connect. Keys and
/// values may hold any bytes. Implementations are thread-safe; the plugin calls them from several
/// threads, as long as its client exists.
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;

  /// Stores a value, instead of the one that the key may have.
  virtual Result<void> put(std::string_view key, std::string_view value) = 0;
  /// The value of a key; waits until a process puts it. A negative limit never passes.
  /// @error deadline exceeded, naming the key
  virtual Result<std::string> get(std::string_view key, std::chrono::milliseconds limit) = 0;
  /// The value of a key, without waiting; empty if it has none.
  virtual Result<std::optional<std::string>> try_get(std::string_view key) = 0;
};

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
