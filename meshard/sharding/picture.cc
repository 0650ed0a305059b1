#include "meshard/sharding/picture.h"

#include "meshard/mesh/grid_picture.h"
#include "meshard/sharding/tile_grid.h"

namespace meshard {

std::string picture(const Sharding& sharding) {
  std::string out;
  for (const TileGrid& grid : tile_grids(sharding)) {
    if (!grid.title.empty()) append(out, cat(grid.title, '\n'));
    std::vector<std::vector<std::string>> cells;
    for (const auto& row : grid.cells) {
      cells.emplace_back();
      for (const std::vector<std::int64_t>& positions : row) {
        std::string ids;
        for (std::int64_t position : positions)
          append(ids, cat(ids.empty() ? "" : ",", sharding.mesh().device_id(position)));
        cells.back().push_back(std::move(ids));
      }
    }
    append(out, grid_picture(cells, grid.down, grid.across));
  }
  return out;
}

}  // namespace meshard
