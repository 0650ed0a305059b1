#include "meshard/hlo/sharding.h"

#include <numeric>
#include <utility>

#include "meshard/hlo/internal/reader.h"

// Field numbers are those of OpSharding and NamedShardingProto of xla/xla_data.proto.
namespace meshard {
namespace {

using internal::damaged;
using pjrt::WireReader;

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

Result<AxisList> read_dimension(std::string_view bytes, const Mesh& mesh) {
  AxisList axes;
  WireReader reader(bytes);
  while (auto field = reader.next())
    if (field->number == 1) {
      MESHARD_ASSIGN_OR_RETURN(AxisRef axis, internal::read_axis_ref(field->bytes, mesh));
      axes.push_back(std::move(axis));
    }
  if (!reader.ok()) return damaged("a dimension's sharding");
  return axes;
}

// NamedShardingProto {tuple 1, mesh 2, dimensions 3, unreduced axes 5}.
Result<void> read_named_sharding(std::string_view bytes, int depth, Elements& to) {
  if (depth > kMostTuples) return damaged("a named sharding");
  internal::ReadMesh mesh;
  std::vector<std::string_view> dimensions, unreduced;
  bool is_tuple = false;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    switch (field->number) {
      case 1:
        is_tuple = to.is_tuple = true;
        MESHARD_RETURN_IF_ERROR(read_named_sharding(field->bytes, depth + 1, to));
        break;
      case 2: {
        MESHARD_ASSIGN_OR_RETURN(mesh, internal::read_mesh(field->bytes));
        break;
      }
      case 3: dimensions.push_back(field->bytes); break;
      case 5: unreduced.push_back(field->bytes); break;
      default: break;
    }
  }
  if (!reader.ok()) return damaged("a named sharding");
  if (is_tuple) return {};
  std::vector<DimensionSpec> specs;
  for (std::string_view one : dimensions) {
    MESHARD_ASSIGN_OR_RETURN(AxisList axes, read_dimension(one, mesh.mesh));
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
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    bool good = true;
    switch (field->number) {
      case 1:
        tiles.kind = tile_kind(field->value);
        if (field->value == kTuple) {
          is_element = false;
          to.is_tuple = true;
        }
        break;
      case 3: good = append_numbers(*field, tiles.dims); break;
      case 4: good = append_numbers(*field, tiles.devices); break;
      case 5: MESHARD_RETURN_IF_ERROR(read_elements(field->bytes, depth + 1, to)); break;
      case 6: tiles.replicate_on_last_tile_dim = field->as_bool(); break;
      case 8: good = append_numbers(*field, kinds); break;
      case 9: good = append_numbers(*field, tiles.reshape_dims); break;
      case 10: good = append_numbers(*field, tiles.transpose_perm); break;
      case 14:
        is_element = false;
        MESHARD_RETURN_IF_ERROR(read_named_sharding(field->bytes, depth + 1, to));
        break;
      default: break;
    }
    if (!good) return damaged("a sharding");
  }
  if (!reader.ok()) return damaged("a sharding");
  if (!is_element) return {};
  for (std::int64_t kind : kinds)
    tiles.last_tile_dims.push_back(tile_kind(static_cast<std::uint64_t>(kind)));
  if (tiles.transpose_perm.empty()) {
    tiles.transpose_perm.resize(tiles.reshape_dims.size());
    std::iota(tiles.transpose_perm.begin(), tiles.transpose_perm.end(), 0);
  }
  if (tiles.kind == TileKind::kMaximal)  // has one tile, too
    tiles = {.kind = tiles.kind, .devices = std::move(tiles.devices)};
  to.tiles.push_back(std::move(tiles));
  return {};
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

}  // namespace meshard
