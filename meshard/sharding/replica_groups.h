// Conversion between mesh axes and the replica groups of collectives.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/mesh/mesh.h"

namespace meshard {

/// A value: groups of devices in XLA's compact (iota) form. The devices 0..n-1 are reshaped to
/// `reshape_dims`, transposed by `transpose_perm`, then cut into `count` groups of `group_size`.
struct IotaGroups {
  std::int64_t count = 1;
  std::int64_t group_size = 1;
  std::vector<std::int64_t> reshape_dims = {};
  std::vector<std::int64_t> transpose_perm = {};
  friend bool operator==(const IotaGroups&, const IotaGroups&) = default;

  /// @error invalid argument: the sizes do not fit, or the permutation is invalid
  Result<void> validate() const;
  /// The groups as lists of devices. @pre valid
  std::vector<std::vector<std::int64_t>> listed() const;
  /// As HLO prints it: `[4,2]<=[2,4]T(1,0)`; `[2,4]<=[8]`.
  std::string to_string() const;
};

/// The replica groups of a collective over `axes`, in mesh order. Members are logical devices:
/// positions of mesh.base(). `axes` may be axes of a derived mesh. Calling listed() on the result
/// takes time proportional to the number of devices.
/// @error unknown axis; an axis that does not consist of axes or sub-axes of the base.
IotaGroups replica_groups(const Mesh& mesh, const AxisList& axes);

/// The axes and sub-axes that the groups run over, in mesh order; none if no axes produce them. The
/// groups are exactly those of AxisGroups(mesh, result), in any order of groups and members.
/// Members are positions of `mesh`. An empty list of groups is HLO's short form of one group of all
/// positions.
std::optional<AxisList> axes_of_groups(const Mesh& mesh,
                                       std::span<const std::vector<std::int64_t>> groups);
std::optional<AxisList> axes_of_groups(const Mesh& mesh, const IotaGroups& groups);

}  // namespace meshard
