// Device groups of collectives, in all forms that plugins write.
#include "meshard/hlo/replica_groups.h"

#include <numeric>

#include "meshard/hlo/internal/reader.h"
#include "meshard/mesh/axes_index.h"
#include "meshard/sharding/tile_assignment.h"

namespace meshard {
namespace {

using pjrt::WireReader;

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

Result<void> read_replica_group(std::string_view bytes, ReplicaGroups& to) {
  std::vector<std::int64_t> group;
  WireReader reader(bytes);
  while (auto field = reader.next())
    if (field->number == 1 && !append_numbers(*field, group)) return damaged("a replica group");
  if (!reader.ok()) return damaged("a replica group");
  to.listed.push_back(std::move(group));
  return {};
}

Result<void> read_iota_list(std::string_view bytes, ReplicaGroups& to) {
  IotaGroups iota{.count = 0, .group_size = 0};
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    bool good = true;
    switch (field->number) {
      case 1: iota.count = field->as_int(); break;
      case 2: iota.group_size = field->as_int(); break;
      case 3: good = append_numbers(*field, iota.reshape_dims); break;
      case 4: good = append_numbers(*field, iota.transpose_perm); break;
      default: break;
    }
    if (!good) return damaged("an iota replica group list");
  }
  if (!reader.ok()) return damaged("an iota replica group list");
  if (iota.transpose_perm.empty()) {
    iota.transpose_perm.resize(iota.reshape_dims.size());
    std::iota(iota.transpose_perm.begin(), iota.transpose_perm.end(), 0);
  }
  to = {.iota = std::move(iota)};
  return {};
}

Result<void> read_mesh_axes_list(std::string_view bytes, ReplicaGroups& to) {
  ReadMesh mesh;
  std::vector<std::string_view> refs;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    if (field->number == 1) {
      MESHARD_ASSIGN_OR_RETURN(mesh, read_mesh(field->bytes));
    }
    if (field->number == 2) refs.push_back(field->bytes);
  }
  if (!reader.ok()) return damaged("a mesh axes replica group list");
  if (mesh.unknown_order)
    return Error(ErrorCode::kUnimplemented,
                 "[hlo] the device order of the mesh has an unsupported form");
  AxisList axes;
  for (std::string_view one : refs) {
    MESHARD_ASSIGN_OR_RETURN(AxisRef axis, read_axis_ref(one, mesh.mesh));
    axes.push_back(std::move(axis));
  }
  try {
    to = groups_over(mesh, axes);
    return {};
  } catch (const Error&) {  // axes that the mesh does not have
    return damaged("a mesh axes replica group list");
  }
}

Result<void> read_device_list(std::string_view bytes, ReplicaGroups& to) {
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    if (field->number == 1) MESHARD_RETURN_IF_ERROR(read_replica_group(field->bytes, to));
    if (field->number == 2) MESHARD_RETURN_IF_ERROR(read_iota_list(field->bytes, to));
  }
  return reader.ok() ? Result<void>() : damaged("a collective device list");
}

}  // namespace internal

Result<std::vector<std::vector<std::int64_t>>> ReplicaGroups::expand() const {
  if (!iota) return listed;
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  if (!iota->validate().ok() || iota->count > kMost / iota->group_size)
    return internal::damaged("an iota replica group list");
  return iota->listed();
}

}  // namespace meshard
