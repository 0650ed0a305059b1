#include "meshard/sharding/tile_grid.h"

#include "meshard/mesh/axes_index.h"
#include "meshard/sharding/picture.h"

namespace meshard {

TileArray tile_array(const Sharding& sharding) {
  const Mesh& mesh = sharding.mesh();
  TileArray array;
  AxisList order;
  for (std::size_t d = 0; d < sharding.rank(); ++d) {
    if (sharding.axes(d).empty()) continue;
    array.shape.push_back(sharding.num_tiles(d));
    for (const AxisRef& axis : sharding.axes(d)) order.push_back(axis);
  }
  for (const AxisRef& axis : sharding.unused_axes()) {
    array.shape.push_back(mesh.axis_size(axis));
    order.push_back(axis);
  }
  AxesIndex index(mesh, order);
  for (std::int64_t i = 0; i < mesh.size(); ++i)
    array.device_ids.push_back(mesh.device_id(index.offset(i)));
  return array;
}

TileGroups tile_groups(const Sharding& sharding) {
  TileGroups result;
  IntVector tile;
  for (std::size_t d = 0; d < sharding.rank(); ++d) {
    result.shape.push_back(sharding.num_tiles(d));
    tile.push_back(0);
  }
  for (std::int64_t t = 0; t < sharding.num_tiles(); ++t) {
    std::int64_t rest = t;
    for (std::size_t d = sharding.rank(); d-- > 0;) {
      tile[d] = rest % result.shape[d];
      rest /= result.shape[d];
    }
    std::vector<std::int64_t>& group = result.groups.emplace_back();
    for (std::int64_t replica = 0; replica < sharding.num_replicas(); ++replica)
      group.push_back(sharding.mesh().device_id(sharding.position_of(tile, replica)));
  }
  return result;
}

std::string TileArray::to_string() const {
  return cat('[', join(shape, ","), "] of devices ", join(device_ids, ","));
}

std::string TileGroups::to_string() const {
  std::string out;
  for (const std::vector<std::int64_t>& group : groups)
    append(out, cat(out.empty() ? "{" : ", {", join(group, ","), '}'));
  return cat('[', join(shape, ","), "] tiles on ", out);
}

namespace {

constexpr std::int64_t kMostDevices = 4096;

std::string label(const Sharding& sharding, std::size_t dimension) {
  std::string axes;
  for (const AxisRef& axis : sharding.axes(dimension)) {
    append(axes, cat(axes.empty() ? "" : ",", axis.name));
    if (!axis.is_whole()) append(axes, cat(":(", axis.pre_size, ')', axis.size));
  }
  if (sharding.is_open(dimension)) append(axes, axes.empty() ? "open" : ",open");
  return cat("dimension ", dimension, ": ", axes.empty() ? "none" : axes);
}

std::vector<std::int64_t> holders(const Sharding& sharding, const IntVector& tile) {
  std::vector<std::int64_t> positions;
  for (std::int64_t replica = 0; replica < sharding.num_replicas(); ++replica)
    positions.push_back(sharding.position_of(tile, replica));
  return positions;
}

}  // namespace

std::vector<TileGrid> tile_grids(const Sharding& sharding) {
  if (sharding.mesh().size() > kMostDevices)
    throw_invalid({}, "[picture] ", sharding.mesh().size(),
                  " devices are too many to draw; the limit is ", kMostDevices);
  InlineVector<std::size_t, 4> drawn;  // the dimensions to draw; the last two form the grid
  for (std::size_t d = 0; d < sharding.rank(); ++d)
    if (sharding.rank() <= 2 || sharding.num_tiles(d) > 1) drawn.push_back(d);
  std::size_t outer = drawn.size() > 2 ? drawn.size() - 2 : 0;
  bool has_down = drawn.size() >= 2, has_across = !drawn.empty();
  std::size_t down = has_down ? drawn[outer] : 0, across = has_across ? drawn.back() : 0;

  std::vector<TileGrid> grids;
  IntVector tile(sharding.rank(), 0);
  while (true) {
    TileGrid grid;
    for (std::size_t i = 0; i < outer; ++i)
      append(grid.title, cat(i == 0 ? "" : ", ", label(sharding, drawn[i]), " = ", tile[drawn[i]]));
    if (has_down) grid.down = label(sharding, down);
    if (has_across) grid.across = label(sharding, across);
    for (std::int64_t r = 0; r < (has_down ? sharding.num_tiles(down) : 1); ++r) {
      grid.cells.emplace_back();
      for (std::int64_t c = 0; c < (has_across ? sharding.num_tiles(across) : 1); ++c) {
        if (has_down) tile[down] = r;
        if (has_across) tile[across] = c;
        grid.cells.back().push_back(holders(sharding, tile));
      }
    }
    grids.push_back(std::move(grid));
    std::size_t i = outer;  // advance the index of the outer dimensions
    while (i > 0 && ++tile[drawn[i - 1]] == sharding.num_tiles(drawn[i - 1])) tile[drawn[--i]] = 0;
    if (i == 0) return grids;
  }
}

std::vector<Grid> drawn_tiles(
    const Sharding& sharding,
    FunctionRef<std::string(const std::vector<std::int64_t>& positions, std::string ids)> text) {
  std::vector<Grid> grids;
  for (const TileGrid& tiles : tile_grids(sharding)) {
    Grid grid{.title = tiles.title, .down = tiles.down, .across = tiles.across};
    for (const auto& row : tiles.cells) {
      grid.cells.emplace_back();
      for (const std::vector<std::int64_t>& positions : row) {
        std::string ids;
        for (std::int64_t position : positions)
          append(ids, cat(ids.empty() ? "" : ",", sharding.mesh().device_id(position)));
        grid.cells.back().push_back({text(positions, std::move(ids)), positions});
      }
    }
    grids.push_back(std::move(grid));
  }
  return grids;
}

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
