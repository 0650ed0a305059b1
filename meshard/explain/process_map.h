// Which process each device of a program belongs to.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "meshard/base/fields.h"
#include "meshard/base/result.h"
#include "meshard/explain/collectives/collective.h"
#include "meshard/mesh/device_groups.h"
#include "meshard/mesh/mesh.h"
#include "meshard/topology/topology.h"

namespace meshard {

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
/// @param most_groups, most_members limits of what is visited
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
