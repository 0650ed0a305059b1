// Converts XLA's tile assignments to shardings over mesh axes.
#include <algorithm>
#include <numeric>
#include <optional>

#include "meshard/layout/modes.h"
#include "meshard/layout/values.h"
#include "meshard/sharding/tile_assignment.h"

namespace meshard {
namespace {

Error failure(const Mesh& mesh, const TileAssignment& tiles, std::string_view why) {
  return Error(ErrorCode::kInvalidArgument,
               cat("[sharding] the tile assignment ", tiles, " over ", mesh, ": ", why));
}

// The layout that maps tile numbers to positions, if there is one. Replicas of one tile may be
// listed in any order.
std::optional<Layout> positions_of(const TileAssignment& tiles) {
  if (tiles.is_iota()) return tiles.iota_layout();
  std::vector<std::int64_t> list = tiles.with_sorted_replicas().devices;
  if (list[0] != 0) return std::nullopt;
  return from_values(list);
}

Result<Sharding> whole(const Mesh& mesh, const TileAssignment& tiles, std::size_t rank) {
  if (tiles.kind == TileKind::kReplicated) return Sharding::replicated(mesh, rank);
  if (tiles.kind == TileKind::kUnreduced)
    return Sharding::replicated(mesh, rank).with_unreduced(remaining_axes(mesh, {}));
  if (tiles.kind == TileKind::kMaximal && mesh.size() == 1 && tiles.devices[0] == 0)
    return Sharding::replicated(mesh, rank);
  return failure(mesh, tiles, "it does not correspond to any axes of the mesh");
}

Mesh anonymous_mesh(const std::vector<std::int64_t>& sizes, std::vector<std::int64_t> devices) {
  std::vector<MeshAxis> axes;
  for (std::size_t i = 0; i < sizes.size(); ++i) axes.push_back({cat("axis_", i), sizes[i]});
  return devices.empty() ? Mesh(std::move(axes)) : Mesh(std::move(axes), std::move(devices));
}

Error no_sharding(const TileAssignment& tiles, std::string_view why) {
  return Error(ErrorCode::kInvalidArgument,
               cat("[sharding] the tile assignment ", tiles, ": ", why));
}

}  // namespace

Result<Sharding> sharding_from_tiles(const Mesh& mesh, const TileAssignment& tiles,
                                     std::size_t rank) {
  MESHARD_RETURN_IF_ERROR(tiles.validate());
  if (tiles.kind != TileKind::kTiled) return whole(mesh, tiles, rank);
  if (tiles.rank() != rank)
    return failure(mesh, tiles,
                   cat("it has ", tiles.rank(), " dimensions, but the tensor has ", rank));
  std::optional<Layout> layout = positions_of(tiles);
  if (!layout)
    return failure(mesh, tiles, "the order of its devices does not correspond to any axes");
  if (layout->size() != mesh.size())
    return failure(mesh, tiles,
                   cat("it has ", layout->size(), " devices, but the mesh has ", mesh.size()));
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
      return failure(mesh, tiles, cat("a sharding cannot have ", to_string(kind), " axes"));
  }
  return Sharding(mesh, PartitionSpec(std::move(dimensions)), rank).with_unreduced(unreduced);
}

Result<Sharding> sharding_from_tiles(const TileAssignment& tiles, std::size_t rank,
                                     std::int64_t num_devices) {
  MESHARD_RETURN_IF_ERROR(tiles.validate());
  if (tiles.kind == TileKind::kMaximal)
    return Sharding::replicated(anonymous_mesh({1}, tiles.devices), rank);
  if (tiles.kind == TileKind::kReplicated || tiles.kind == TileKind::kUnreduced) {
    if (num_devices < 1)
      return no_sharding(tiles, cat("it requires at least one device, not ", num_devices));
    return whole(anonymous_mesh({num_devices}, {}), tiles, rank);
  }
  if (tiles.kind != TileKind::kTiled) return no_sharding(tiles, "it does not specify a placement");
  if (tiles.rank() != rank)
    return no_sharding(tiles,
                       cat("it has ", tiles.rank(), " dimensions, but the tensor has ", rank));
  bool in_order = std::is_sorted(tiles.transpose_perm.begin(), tiles.transpose_perm.end());
  Mesh mesh = anonymous_mesh(
      tiles.dims, tiles.is_iota() && in_order ? std::vector<std::int64_t>() : tiles.device_list());
  // The mesh lists its devices in tile order, so tile i is at position i.
  TileAssignment by_position = tiles;
  by_position.devices.clear();
  by_position.reshape_dims = tiles.dims;
  by_position.transpose_perm.resize(tiles.dims.size());
  std::iota(by_position.transpose_perm.begin(), by_position.transpose_perm.end(), std::int64_t{0});
  return sharding_from_tiles(mesh, by_position, rank);
}

}  // namespace meshard
