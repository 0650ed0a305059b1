// The shardings of values and the device groups of collectives in a compiled module.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/sharding/op_sharding.h"
#include "meshard/sharding/replica_groups.h"

namespace meshard {

/// A value: the sharding of a value in a compiled module. Devices are logical devices.
struct HloSharding {
  OpSharding tiles{TileAssignment()};
  /// The same by axis names, which newer plugins write: one for each element of `tiles`, over the
  /// mesh as it appears in the module. Empty if the module names no axes.
  std::vector<Sharding> named = {};

  /// The sharding of each of `count` values: the elements of a tuple; otherwise one for all.
  std::vector<HloSharding> of_values(std::size_t count) const;
  std::string to_string() const { return tiles.to_string(); }
  /// Reads the bytes of an OpSharding message. @error data loss if they are damaged
  static Result<HloSharding> from_bytes(std::string_view bytes);
  friend bool operator==(const HloSharding&, const HloSharding&) = default;
};

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
