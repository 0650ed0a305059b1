#include "meshard/sharding/picture.h"

#include "meshard/layout/picture.h"
#include "meshard/sharding/tile_grid.h"

namespace meshard {
namespace {

// One cell for each tile: the ids of its devices.
std::vector<Grid> tiles_with_ids(const Sharding& sharding) {
  return drawn_tiles(sharding,
                     [](const std::vector<std::int64_t>&, std::string ids) { return ids; });
}

}  // namespace

std::string picture(const Sharding& sharding) { return grid_picture(tiles_with_ids(sharding)); }

std::string picture_svg(const Sharding& sharding) {
  return grid_picture_svg(tiles_with_ids(sharding));
}

}  // namespace meshard
