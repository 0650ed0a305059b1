#include "meshard/hlo/sharding.h"

#include <numeric>
#include <utility>

#include "meshard/hlo/internal/reader.h"
#include "meshard/mesh/axes_index.h"
#include "meshard/sharding/tile_assignment.h"

// Field numbers are those of OpSharding and NamedShardingProto of xla/xla_data.proto.

namespace meshard {
namespace {

using pjrt::damaged;
using pjrt::field;
using pjrt::on_field;
using pjrt::read_message;
using pjrt::WireField;

constexpr int kMostTuples = 32;  // of tuples; damaged bytes could nest without limit

// The elements of a sharding in the order of the bytes.
struct Elements {
  bool is_tuple = false;
  std::vector<TileAssignment> tiles;
  std::vector<Sharding> named;
};

TileKind tile_kind(std::uint64_t number) {
  switch (number) {
    case 0: return TileKind::kReplicated;
    case 1: return TileKind::kMaximal;
    case 3: return TileKind::kTiled;
    case 4: return TileKind::kManual;
    case 6: return TileKind::kUnreduced;
    default: return TileKind::kUnknown;
  }
}

// The axes of one dimension.
Result<AxisList> read_axes(std::string_view bytes, const Mesh& mesh) {
  AxisList axes;
  auto axis = [&](std::string_view one) { return internal::read_axis_ref(one, mesh); };
  MESHARD_RETURN_IF_ERROR(read_message(bytes, "a dimension's sharding", field(1, axes, axis)));
  return axes;
}

// NamedShardingProto {tuple 1, mesh 2, dimensions 3, unreduced axes 5}.
Result<void> read_named_sharding(std::string_view bytes, int depth, Elements& to) {
  if (depth > kMostTuples) return damaged("a named sharding");
  internal::ReadMesh mesh;
  std::vector<std::string_view> dimensions, unreduced;
  bool is_tuple = false;
  auto element = [&](const WireField& from) {
    is_tuple = to.is_tuple = true;
    return read_named_sharding(from.bytes, depth + 1, to);
  };
  MESHARD_RETURN_IF_ERROR(read_message(bytes, "a named sharding", on_field(1, element),
                                       field(2, mesh, internal::read_mesh), field(3, dimensions),
                                       field(5, unreduced)));
  if (is_tuple) return {};
  std::vector<DimensionSpec> specs;
  for (std::string_view one : dimensions) {
    MESHARD_ASSIGN_OR_RETURN(AxisList axes, read_axes(one, mesh.mesh));
    specs.emplace_back(std::move(axes));
  }
  AxisList sums;
  for (std::string_view one : unreduced) {
    MESHARD_ASSIGN_OR_RETURN(AxisRef axis, internal::read_axis_ref(one, mesh.mesh));
    sums.push_back(std::move(axis));
  }
  try {
    Sharding named = Sharding(mesh.mesh, PartitionSpec(std::move(specs))).with_unreduced(sums);
    TileAssignment tiles = tile_assignment(named);
    if (mesh.unknown_order)
      tiles = {.kind = TileKind::kUnknown};
    else if (mesh.has_order && tiles.kind == TileKind::kTiled)
      tiles = tiles.with_device_ids(mesh.mesh);
    to.tiles.push_back(std::move(tiles));
    to.named.push_back(std::move(named));
  } catch (const Error&) {  // axes that the mesh does not have
    return damaged("a named sharding");
  }
  return {};
}

Result<void> read_elements(std::string_view bytes, int depth, Elements& to) {
  if (depth > kMostTuples) return damaged("a sharding");
  constexpr std::uint64_t kTuple = 2;
  TileAssignment tiles;
  std::vector<std::int64_t> kinds;
  bool is_element = true;
  auto kind = [&](const WireField& from) {
    tiles.kind = tile_kind(from.value);
    if (from.value != kTuple) return;
    is_element = false;
    to.is_tuple = true;
  };
  auto element = [&](const WireField& from) { return read_elements(from.bytes, depth + 1, to); };
  auto named = [&](const WireField& from) {
    is_element = false;
    return read_named_sharding(from.bytes, depth + 1, to);
  };
  MESHARD_RETURN_IF_ERROR(read_message(
      bytes, "a sharding", on_field(1, kind), field(3, tiles.dims), field(4, tiles.devices),
      on_field(5, element), field(6, tiles.replicate_on_last_tile_dim), field(8, kinds),
      field(9, tiles.reshape_dims), field(10, tiles.transpose_perm), on_field(14, named)));
  if (!is_element) return {};
  for (std::int64_t each : kinds)
    tiles.last_tile_dims.push_back(tile_kind(static_cast<std::uint64_t>(each)));
  if (tiles.transpose_perm.empty()) {
    tiles.transpose_perm.resize(tiles.reshape_dims.size());
    std::iota(tiles.transpose_perm.begin(), tiles.transpose_perm.end(), 0);
  }
  if (tiles.kind == TileKind::kMaximal)  // has one tile, too
    tiles = {.kind = tiles.kind, .devices = std::move(tiles.devices)};
  to.tiles.push_back(std::move(tiles));
  return {};
}

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

std::vector<HloSharding> HloSharding::of_values(std::size_t count) const {
  if (!tiles.is_tuple()) return std::vector<HloSharding>(count, *this);
  std::vector<HloSharding> all;
  for (std::size_t i = 0; i < tiles.elements().size(); ++i) {
    all.push_back({OpSharding(tiles.elements()[i])});
    if (!named.empty()) all.back().named = {named[i]};
  }
  return all;
}

Result<HloSharding> HloSharding::from_bytes(std::string_view bytes) {
  Elements read;
  MESHARD_RETURN_IF_ERROR(read_elements(bytes, 0, read));
  bool one = !read.is_tuple && read.tiles.size() == 1;
  bool all_named = read.named.size() == read.tiles.size();
  return HloSharding{
      .tiles = one ? OpSharding(std::move(read.tiles[0])) : OpSharding(std::move(read.tiles)),
      .named = all_named ? std::move(read.named) : std::vector<Sharding>()};
}

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
