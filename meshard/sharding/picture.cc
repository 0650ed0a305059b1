#include "meshard/sharding/picture.h"

#include "meshard/layout/grid_picture.h"
#include "meshard/sharding/tile_grid.h"

namespace meshard {
namespace {

// One cell for each tile: the ids of its devices, and a color for each device.
std::vector<Grid> drawn_tiles(const Sharding& sharding) {
  std::vector<Grid> grids;
  for (const TileGrid& tiles : tile_grids(sharding)) {
    Grid grid{.title = tiles.title, .down = tiles.down, .across = tiles.across};
    for (const auto& row : tiles.cells) {
      grid.cells.emplace_back();
      for (const std::vector<std::int64_t>& positions : row) {
        std::string ids;
        for (std::int64_t position : positions)
          append(ids, cat(ids.empty() ? "" : ",", sharding.mesh().device_id(position)));
        grid.cells.back().push_back({std::move(ids), positions});
      }
    }
    grids.push_back(std::move(grid));
  }
  return grids;
}

}  // namespace

std::string picture(const Sharding& sharding) { return grid_picture(drawn_tiles(sharding)); }

std::string picture_svg(const Sharding& sharding) {
  return grid_picture_svg(drawn_tiles(sharding));
}

}  // namespace meshard
