// The processes of a run: which devices they have, and the links between them.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "meshard/base/fields.h"
#include "meshard/base/result.h"
#include "meshard/explain/collectives/collective.h"
#include "meshard/mesh/device_groups.h"
#include "meshard/mesh/mesh.h"
#include "meshard/topology/topology.h"

namespace meshard {

/// Value type: bandwidth and latency of a kind of link.
struct LinkFigures {
  /// Bytes per second in one direction.
  double bandwidth = 0;
  /// Seconds for each message.
  double latency = 0;

  /// Parses `10GB/s`, `10GB/s,20us`. Units: B/s, KB/s, MB/s, GB/s, TB/s (powers of 1000), Kbit/s,
  /// Mbit/s, Gbit/s; ns, us, ms, s.
  /// @error invalid argument
  static Result<LinkFigures> parse(std::string_view text);
  /// `10 GB/s, 20 us`
  std::string to_string() const;
  friend bool operator==(const LinkFigures&, const LinkFigures&) = default;
};

/// Value type: how a program is divided into processes, and the links that its collectives use.
struct LinkOptions {
  /// Divides the target's devices, in the order of their ids, into as many processes of equal size.
  /// None: as in the target's topology, if `between_processes` is set.
  std::optional<std::int64_t> processes = std::nullopt;
  /// The link of one process to others, which its devices share. None: collectives across processes
  /// are not distinguished from others.
  std::optional<LinkFigures> between_processes = std::nullopt;
  /// The links of one device to others of its process, all together. None: the published ones.
  std::optional<LinkFigures> between_devices = std::nullopt;
  friend bool operator==(const LinkOptions&, const LinkOptions&) = default;
};

/// Value type: the processes of a program's mesh, for a report.
struct MeshProcesses {
  /// How many processes have devices of the mesh.
  std::int64_t count = 1;
  /// The mesh axes, by name, along which a group has devices of several processes.
  std::vector<std::string> axes;

  MESHARD_FIELDS(count, axes)
  /// `2 processes; axis "data" crosses them`, `4 processes; no axis crosses them`
  std::string to_string() const;
  friend bool operator==(const MeshProcesses&, const MeshProcesses&) = default;
};

/// Calls `visit` with the devices that send and receive in a shift along axes of a mesh.
/// @param most_groups, most_members the numbers of groups, and of members of each, to visit at most
template <class Visit>
void for_each_pair(const Mesh& mesh, const AxisShift& shift, const Visit& visit,
                   std::int64_t most_groups = std::numeric_limits<std::int64_t>::max(),
                   std::int64_t most_members = std::numeric_limits<std::int64_t>::max()) {
  DeviceGroups groups = mesh.groups(shift.axes);
  for (std::int64_t g = 0; g < groups.count() && g < most_groups; ++g) {
    DeviceGroup group = groups[g];
    std::int64_t n = group.size();
    for (std::int64_t k = 0; k < n && k < most_members; ++k) {
      std::int64_t to = k + shift.by;
      if (shift.wraps || (to >= 0 && to < n)) visit(group[k], group[((to % n) + n) % n]);
    }
  }
}

/// Value type: the process of each device.
class ProcessMap {
 public:
  /// The processes that the topology has.
  static ProcessMap of(const Topology& topology);
  /// Divides the devices, in the order of their ids, into `count` processes of equal size.
  /// @error invalid argument if `count` does not divide the number of devices
  static Result<ProcessMap> divided(const Topology& topology, std::int64_t count);

  /// The number of processes.
  std::int64_t count() const { return count_; }
  /// None for a device that is not in the topology.
  std::optional<std::int64_t> process_of(std::int64_t device) const;
  /// The largest number of devices of the mesh that one process has. Without a mesh: of all.
  std::int64_t most_devices(const std::optional<Mesh>& mesh) const;

  /// Whether a group along these axes has devices of several processes.
  bool crosses(const Mesh& mesh, const AxisList& axes) const;
  /// Whether data goes from one process to another. If the groups match no axes: whether they are
  /// larger than a process.
  bool crosses(const std::optional<Mesh>& mesh, const Collective& one) const;
  /// For a permutation that shifts along one list of axes: the largest number of devices of a
  /// process that send to another process.
  std::int64_t most_senders(const Mesh& mesh, const AxisShift& shift) const;
  MeshProcesses of_mesh(const Mesh& mesh) const;

 private:
  std::unordered_map<std::int64_t, std::int64_t> process_of_;
  std::int64_t count_ = 1;
};

}  // namespace meshard
