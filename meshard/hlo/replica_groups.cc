// Device groups of collectives, in all forms that plugins write.
#include "meshard/hlo/replica_groups.h"

#include <numeric>

#include "meshard/hlo/internal/reader.h"
#include "meshard/mesh/axes_index.h"
#include "meshard/sharding/tile_assignment.h"

namespace meshard {
namespace {

using pjrt::damaged;
using pjrt::field;
using pjrt::read_message;

// The groups of devices that differ only along `axes`, the first of which is the most significant.
ReplicaGroups groups_over(const internal::ReadMesh& of, const AxisList& axes) {
  const Mesh& mesh = of.mesh;
  PartitionSpec spec({DimensionSpec(remaining_axes(mesh, axes)), DimensionSpec(axes)});
  TileAssignment tiles = axis_tile_assignment(Sharding(mesh, spec)), shortest = tiles.shortest();
  IotaGroups iota{tiles.dims[0], tiles.dims[1], shortest.reshape_dims, shortest.transpose_perm};
  if (iota.reshape_dims.empty()) iota = {1, 1, {1}, {0}};  // a mesh of one device
  if (!of.has_order) return {.iota = std::move(iota)};
  std::vector<std::vector<std::int64_t>> listed = iota.listed();
  for (std::vector<std::int64_t>& group : listed)
    for (std::int64_t& device : group) device = mesh.device_id(device);
  return {.listed = std::move(listed)};
}

}  // namespace

namespace internal {

Result<std::vector<std::int64_t>> read_replica_group(std::string_view bytes) {
  std::vector<std::int64_t> group;
  MESHARD_RETURN_IF_ERROR(read_message(bytes, "a replica group", field(1, group)));
  return group;
}

Result<ReplicaGroups> read_iota_list(std::string_view bytes) {
  IotaGroups iota{.count = 0, .group_size = 0};
  MESHARD_RETURN_IF_ERROR(read_message(bytes, "an iota replica group list", field(1, iota.count),
                                       field(2, iota.group_size), field(3, iota.reshape_dims),
                                       field(4, iota.transpose_perm)));
  if (iota.transpose_perm.empty()) {
    iota.transpose_perm.resize(iota.reshape_dims.size());
    std::iota(iota.transpose_perm.begin(), iota.transpose_perm.end(), 0);
  }
  return ReplicaGroups{.iota = std::move(iota)};
}

Result<ReplicaGroups> read_mesh_axes_list(std::string_view bytes) {
  constexpr std::string_view kWhat = "a mesh axes replica group list";
  ReadMesh mesh;
  std::vector<std::string_view> refs;
  MESHARD_RETURN_IF_ERROR(read_message(bytes, kWhat, field(1, mesh, read_mesh), field(2, refs)));
  if (mesh.unknown_order)
    return Error(ErrorCode::kUnimplemented,
                 "[hlo] the device order of the mesh has an unsupported form");
  AxisList axes;
  for (std::string_view one : refs) {
    MESHARD_ASSIGN_OR_RETURN(AxisRef axis, read_axis_ref(one, mesh.mesh));
    axes.push_back(std::move(axis));
  }
  try {
    return groups_over(mesh, axes);
  } catch (const Error&) {  // axes that the mesh does not have
    return damaged(kWhat);
  }
}

Result<ReplicaGroups> read_device_list(std::string_view bytes) {
  ReplicaGroups to;
  MESHARD_RETURN_IF_ERROR(read_message(bytes, "a collective device list",
                                       field(1, to.listed, read_replica_group),
                                       field(2, to, read_iota_list)));
  return to;
}

}  // namespace internal

Result<std::vector<std::vector<std::int64_t>>> ReplicaGroups::expand() const {
  if (!iota) return listed;
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  if (!iota->validate().ok() || iota->count > kMost / iota->group_size)
    return damaged("an iota replica group list");
  return iota->listed();
}

}  // namespace meshard
