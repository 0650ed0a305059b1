// From the compiler's tiles back to mesh axes.
#include <algorithm>
#include <optional>

#include "meshard/layout/from_values.h"
#include "meshard/layout/split.h"
#include "meshard/sharding/tile_assignment.h"

namespace meshard {
namespace {

Error failure(const Mesh& mesh, const TileAssignment& tiles, std::string_view why) {
  return Error(ErrorCode::kInvalidArgument,
               cat("[sharding] the tile assignment ", tiles, " over ", mesh, ": ", why));
}

// Tile number -> position, if it is a layout. Replicas of one tile may be listed in any order.
std::optional<Layout> positions_of(const TileAssignment& tiles) {
  if (tiles.is_iota()) return tiles.iota_layout();
  std::vector<std::int64_t> list = tiles.devices;
  bool replicas =
      tiles.replicate_on_last_tile_dim ||
      (tiles.last_tile_dims.size() == 1 && tiles.last_tile_dims[0] == TileKind::kReplicated);
  if (replicas) {
    auto group = static_cast<std::ptrdiff_t>(tiles.dims.back());
    for (auto first = list.begin(); first != list.end(); first += group)
      std::sort(first, first + group);
  }
  if (list[0] != 0) return std::nullopt;
  return from_values(list);
}

Result<Sharding> whole(const Mesh& mesh, const TileAssignment& tiles, std::size_t rank) {
  if (tiles.kind == TileKind::kReplicated) return Sharding::replicated(mesh, rank);
  if (tiles.kind == TileKind::kUnreduced)
    return Sharding::replicated(mesh, rank).with_unreduced(remaining_axes(mesh, {}));
  if (tiles.kind == TileKind::kMaximal && mesh.size() == 1 && tiles.devices[0] == 0)
    return Sharding::replicated(mesh, rank);
  return failure(mesh, tiles, "no axes of the mesh say this");
}

}  // namespace

Result<Sharding> sharding_from_tiles(const Mesh& mesh, const TileAssignment& tiles,
                                     std::size_t rank) {
  MESHARD_RETURN_IF_ERROR(tiles.validate());
  if (tiles.kind != TileKind::kTiled) return whole(mesh, tiles, rank);
  if (tiles.rank() != rank)
    return failure(mesh, tiles, cat("it has ", tiles.rank(), " dimensions, the tensor ", rank));
  std::optional<Layout> layout = positions_of(tiles);
  if (!layout) return failure(mesh, tiles, "the devices do not follow any axes");
  if (layout->size() != mesh.size())
    return failure(mesh, tiles, cat("it has ", layout->size(), " devices, the mesh ", mesh.size()));
  Result<Layout> by_dimension = split(*layout, tiles.dims);
  if (!by_dimension) return failure(mesh, tiles, by_dimension.error().message());

  std::vector<DimensionSpec> dimensions;
  AxisList unreduced;
  for (std::size_t d = 0; d < tiles.dims.size(); ++d) {
    Result<AxisList> axes = axes_of(mesh, by_dimension->mode(d));
    if (!axes) return failure(mesh, tiles, cat("dimension ", d, ": ", axes.error().message()));
    TileKind kind = tiles.last_tile_dims.empty() || d < rank ? TileKind::kReplicated
                                                             : tiles.last_tile_dims[d - rank];
    if (d < rank)
      dimensions.emplace_back(*std::move(axes));
    else if (kind == TileKind::kUnreduced)
      for (const AxisRef& axis : *axes) unreduced.push_back(axis);
    else if (kind != TileKind::kReplicated)
      return failure(mesh, tiles, cat("a sharding has no ", to_string(kind), " axes"));
  }
  return Sharding(mesh, PartitionSpec(std::move(dimensions)), rank).with_unreduced(unreduced);
}

}  // namespace meshard
