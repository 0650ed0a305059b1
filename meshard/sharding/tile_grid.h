// The tiles of a sharding laid out in two dimensions, for pictures.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "meshard/base/function_ref.h"
#include "meshard/layout/picture.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

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
