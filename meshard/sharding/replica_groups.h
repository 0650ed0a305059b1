// Which mesh axes a collective runs over.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "meshard/mesh/mesh.h"

namespace meshard {

/// A value: groups of devices in the compiler's compact form: the devices 0..n-1, reshaped to
/// `reshape_dims`, transposed by `transpose_perm`, then cut into `count` groups of `group_size`.
struct IotaGroups {
  std::int64_t count = 1;
  std::int64_t group_size = 1;
  std::vector<std::int64_t> reshape_dims = {};
  std::vector<std::int64_t> transpose_perm = {};
  friend bool operator==(const IotaGroups&, const IotaGroups&) = default;

  /// The groups, listed.
  std::vector<std::vector<std::int64_t>> listed() const;
  /// As HLO prints it: `[4,2]<=[2,4]T(1,0)`; `[2,4]<=[8]`.
  std::string to_string() const;
};

/// The groups of a collective over `axes`, in mesh order, as logical devices: positions of
/// mesh.base(). `axes` may be axes of a derived mesh. listed() of it costs the number of devices.
/// @error unknown axis; an axis that does not fall on sub-axes of the base.
IotaGroups replica_groups(const Mesh& mesh, const AxisList& axes);

/// The axes and sub-axes, in mesh order, that the groups run over: the groups are exactly those of
/// AxisGroups(mesh, result), in whatever order groups and members are listed. None if no axes give
/// them. Groups hold positions of `mesh`. No group at all is HLO's short form of one group of all
/// positions.
std::optional<AxisList> axes_of_groups(const Mesh& mesh,
                                       std::span<const std::vector<std::int64_t>> groups);
std::optional<AxisList> axes_of_groups(const Mesh& mesh, const IotaGroups& groups);

}  // namespace meshard
