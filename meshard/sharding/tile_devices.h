// Which devices hold which tile, as arrays of device ids.
#pragma once
#include <cstdint>
#include <vector>

#include "meshard/sharding/sharding.h"

namespace meshard {

/// A value: the devices of a mesh in the order in which a sharding takes its axes, row-major.
struct TileArray {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> device_ids;
  friend bool operator==(const TileArray&, const TileArray&) = default;
};

/// A dimension for each tensor dimension that has axes (merged, the first the most significant),
/// then one for each axis that splits none, in mesh order. torch_xla calls this the tile
/// assignment; it says nothing about dimensions that are not split.
TileArray tile_array(const Sharding& sharding);

/// A value: for each tile, the devices that hold it. torch_xla's group assignment is the numbers of
/// the groups as an array of `shape`; its replication groups are `groups`.
struct TileGroups {
  std::vector<std::int64_t> shape;                ///< tiles of each tensor dimension
  std::vector<std::vector<std::int64_t>> groups;  ///< by tile, row-major; device ids in mesh order
  friend bool operator==(const TileGroups&, const TileGroups&) = default;
};

/// @post the groups hold each device of the mesh once
TileGroups tile_groups(const Sharding& sharding);

}  // namespace meshard
