// The device groups of collectives in a compiled module.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/sharding/replica_groups.h"

namespace meshard {

/// A value: the device groups of a collective, listed or compact. Groups that a module gives by the
/// axes of a mesh are compact, or listed if the mesh has an order of its own.
struct ReplicaGroups {
  std::vector<std::vector<std::int64_t>> listed = {};
  /// If present, `listed` is empty.
  std::optional<IotaGroups> iota = std::nullopt;

  bool given() const { return iota || !listed.empty(); }
  /// The list of groups. Empty: one group of all devices.
  /// @error data loss if the compact form is damaged, or has more than 2^30 devices
  Result<std::vector<std::vector<std::int64_t>>> expand() const;
  friend bool operator==(const ReplicaGroups&, const ReplicaGroups&) = default;
};

}  // namespace meshard
