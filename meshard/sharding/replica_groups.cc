#include "meshard/sharding/replica_groups.h"

#include <algorithm>

#include "meshard/layout/modes.h"
#include "meshard/layout/values.h"
#include "meshard/mesh/device_groups.h"
#include "meshard/sharding/tile_assignment.h"

namespace meshard {
namespace {

AxisList in_mesh_order(const Mesh& mesh, const AxisList& axes) {
  return remaining_axes(mesh, remaining_axes(mesh, axes));
}

// The axes that one group runs over, in mesh order; none if no axes have its members.
std::optional<AxisList> axes_of_group(const Mesh& mesh, std::vector<std::int64_t> group) {
  std::sort(group.begin(), group.end());
  std::optional<Layout> steps = from_values(group);
  if (!steps) return std::nullopt;
  Result<AxisList> axes = axes_of(mesh, *steps);
  if (!axes) return std::nullopt;
  return in_mesh_order(mesh, *axes);
}

TileAssignment tiles_of(const IotaGroups& groups) {
  return {.kind = TileKind::kTiled,
          .dims = {groups.count, groups.group_size},
          .reshape_dims = groups.reshape_dims,
          .transpose_perm = groups.transpose_perm};
}

}  // namespace

Result<void> IotaGroups::validate() const { return tiles_of(*this).validate(); }

std::vector<std::vector<std::int64_t>> IotaGroups::listed() const {
  std::vector<std::int64_t> devices = tiles_of(*this).device_list();
  std::vector<std::vector<std::int64_t>> groups;
  for (auto first = devices.begin(); first != devices.end(); first += group_size)
    groups.emplace_back(first, first + group_size);
  return groups;
}

std::string IotaGroups::to_string() const {
  std::string tiles = tiles_of(*this).to_string();  // {devices=[4,2]<=[2,4]T(1,0)}
  return tiles.substr(tiles.find('['), tiles.find('}') - tiles.find('['));
}

IotaGroups replica_groups(const Mesh& mesh, const AxisList& axes) {
  Mesh base = mesh.base();
  AxisList along = mesh.axes_in_base(axes).value(), rest = remaining_axes(base, along);
  AxisGroups groups(base, along);
  // Each group consists of the replicas of one tile of a tensor that is split by all other axes.
  TileAssignment tiles = tile_assignment(Sharding(base, PartitionSpec({DimensionSpec(rest)})));
  if (tiles.kind != TileKind::kTiled)
    return {groups.count(), groups.group_size(), {base.size()}, {0}};
  return {groups.count(), groups.group_size(), tiles.reshape_dims, tiles.transpose_perm};
}

std::optional<AxisList> axes_of_groups(const Mesh& mesh,
                                       std::span<const std::vector<std::int64_t>> groups) {
  if (groups.empty()) return remaining_axes(mesh, {});
  if (groups[0].empty()) return std::nullopt;
  std::optional<AxisList> axes = axes_of_group(mesh, groups[0]);
  if (!axes) return std::nullopt;
  AxisGroups expected(mesh, *axes);
  if (static_cast<std::int64_t>(groups.size()) != expected.count()) return std::nullopt;
  std::vector<bool> seen(static_cast<std::size_t>(mesh.size()));
  for (const std::vector<std::int64_t>& group : groups) {
    if (static_cast<std::int64_t>(group.size()) != expected.group_size()) return std::nullopt;
    for (std::int64_t position : group) {
      if (position < 0 || position >= mesh.size()) return std::nullopt;
      if (seen[static_cast<std::size_t>(position)]) return std::nullopt;
      seen[static_cast<std::size_t>(position)] = true;
      if (expected.group_of(position) != expected.group_of(group[0])) return std::nullopt;
    }
  }
  return axes;
}

std::optional<AxisList> axes_of_groups(const Mesh& mesh, const IotaGroups& groups) {
  TileAssignment tiles = tiles_of(groups);
  if (!tiles.is_iota() || !tiles.validate().ok()) return std::nullopt;
  Layout positions = tiles.iota_layout();
  if (positions.size() != mesh.size()) return std::nullopt;
  Result<Layout> parts = split(positions, tiles.dims);
  if (!parts) return std::nullopt;
  Result<AxisList> axes = axes_of(mesh, parts->mode(1));
  if (!axes) return std::nullopt;
  return in_mesh_order(mesh, *axes);
}

}  // namespace meshard
