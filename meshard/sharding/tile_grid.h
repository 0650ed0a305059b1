// The tiles of a sharding laid out in two dimensions, for pictures.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "meshard/base/function_ref.h"
#include "meshard/layout/picture.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

// Which devices hold which tile, as arrays of device ids.

/// A value: the devices of a mesh in the order in which a sharding uses its axes, row-major.
struct TileArray {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> device_ids;
  /// `[2,4] of devices 0,1,2,3,4,5,6,7`.
  std::string to_string() const;
  friend bool operator==(const TileArray&, const TileArray&) = default;
};

/// The devices of a sharding as an array. It has a dimension for each tensor dimension with axes
/// (merged, the first the most significant), then one for each axis that splits no dimension, in
/// mesh order. torch_xla calls this the tile assignment. Tensor dimensions that are not split do
/// not appear in it.
TileArray tile_array(const Sharding& sharding);

/// A value: for each tile, the devices that hold it. torch_xla's group assignment is an array of
/// group numbers with this `shape`; its replication groups are `groups`.
struct TileGroups {
  std::vector<std::int64_t> shape;                ///< tiles of each tensor dimension
  std::vector<std::vector<std::int64_t>> groups;  ///< by tile, row-major; device ids in mesh order
  /// `[2] tiles on {0,1}, {2,3}`.
  std::string to_string() const;
  friend bool operator==(const TileGroups&, const TileGroups&) = default;
};

/// The devices that hold each tile of a sharding.
/// @post the groups contain each device of the mesh once
TileGroups tile_groups(const Sharding& sharding);

/// A value: one table of tiles; each cell lists the positions that hold its tile.
struct TileGrid {
  /// Index along the dimensions outside the grid: `dimension 0: data = 1`. Empty if there is one
  /// grid.
  std::string title;
  /// Labels of the two dimensions of the grid: `dimension 0: data`; empty if there is no such
  /// dimension.
  std::string down, across;
  std::vector<std::vector<std::vector<std::int64_t>>> cells;
};

/// The grids that together show all tiles of a sharding. @error more than 4096 devices.
std::vector<TileGrid> tile_grids(const Sharding& sharding);

/// The same as pictures: a color for each device, and in each cell the text that `text` makes of
/// the positions that hold the tile and of the ids of their devices, such as `0,4`.
/// @error as tile_grids()
std::vector<Grid> drawn_tiles(
    const Sharding& sharding,
    FunctionRef<std::string(const std::vector<std::int64_t>& positions, std::string ids)> text);

}  // namespace meshard
