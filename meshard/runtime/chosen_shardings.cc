#include "meshard/runtime/chosen_shardings.h"

#include <algorithm>

#include "meshard/sharding/tile_assignment.h"

namespace meshard {
namespace {

Result<TileKind> tile_kind(HloSharding::Kind kind) {
  switch (kind) {
    case HloSharding::Kind::kReplicated: return TileKind::kReplicated;
    case HloSharding::Kind::kMaximal: return TileKind::kMaximal;
    case HloSharding::Kind::kOther: return TileKind::kTiled;
    case HloSharding::Kind::kManual: return TileKind::kManual;
    case HloSharding::Kind::kUnknown: return TileKind::kUnknown;
    case HloSharding::Kind::kUnreduced: return TileKind::kUnreduced;
    case HloSharding::Kind::kTuple: break;
  }
  return Error(ErrorCode::kUnimplemented, "[runtime] expected a single sharding, got a tuple");
}

Result<TileAssignment> to_tiles(const HloSharding& sharding) {
  TileAssignment tiles;
  MESHARD_ASSIGN_OR_RETURN(tiles.kind, tile_kind(sharding.kind));
  tiles.dims = sharding.tile_dimensions;
  tiles.devices = sharding.listed_devices;
  tiles.reshape_dims = sharding.iota.dimensions;
  tiles.transpose_perm = sharding.iota.permutation;
  tiles.replicate_on_last_tile_dim = sharding.replicate_on_last_tile_dimension;
  for (HloSharding::Kind kind : sharding.last_tile_kinds) {
    MESHARD_ASSIGN_OR_RETURN(TileKind last, tile_kind(kind));
    tiles.last_tile_dims.push_back(last);
  }
  return tiles;
}

// True if `named` is `mesh` as the compiler sees it, with logical devices instead of ids.
bool is_named(const HloMesh& named, const Mesh& mesh, const Mesh& numbering) {
  auto same_axis = [](const HloMesh::Axis& a, const MeshAxis& b) {
    return a.name == b.name && a.size == b.size;
  };
  if (!std::equal(named.axes.begin(), named.axes.end(), mesh.axes().begin(), mesh.axes().end(),
                  same_axis))
    return false;
  if (named.unknown_order) return true;
  if (!named.device_ids.empty() &&
      static_cast<std::int64_t>(named.device_ids.size()) != mesh.size())
    return false;
  for (std::int64_t p = 0; p < mesh.size(); ++p) {
    std::int64_t logical =
        named.device_ids.empty() ? p : named.device_ids[static_cast<std::size_t>(p)];
    if (numbering.position(mesh.device_id(p)) != logical) return false;
  }
  return true;
}

// Newer plugins write axis names, of one of our meshes or of one like it; the names are looked up
// in ours.
Result<Sharding> from_named(const HloNamedSharding& named, const LoweredModule& lowered,
                            std::size_t rank) {
  const Mesh* found = &*lowered.mesh;
  for (const Mesh& each : lowered.meshes)
    if (is_named(named.mesh, each, *lowered.mesh)) {
      found = &each;
      break;
    }
  const Mesh& mesh = *found;
  std::vector<DimensionSpec> dimensions;
  for (const auto& dimension : named.dimensions) {
    AxisList axes;
    for (const HloAxisRef& ref : dimension.axes) {
      if (ref.axis < 0 || static_cast<std::size_t>(ref.axis) >= named.mesh.axes.size())
        return Error(ErrorCode::kDataLoss,
                     "[runtime] a sharding uses an axis that its mesh does not have");
      const std::string& name = named.mesh.axes[static_cast<std::size_t>(ref.axis)].name;
      if (!mesh.find_axis(name))
        return Error(ErrorCode::kUnimplemented, cat("[runtime] the compiler chose axis \"", name,
                                                    "\", which ", mesh, " does not have"));
      axes.push_back(ref.part ? AxisRef(name, ref.part->pre_size, ref.part->size) : AxisRef(name));
    }
    dimensions.emplace_back(std::move(axes));
  }
  return Sharding(mesh, PartitionSpec(std::move(dimensions)), rank);
}

// A sharding that combines two meshes, or uses sub-axes of sub-axes, gets a mesh of its own.
Result<Sharding> convert_or_throw(const HloSharding& sharding, const LoweredModule& lowered,
                                  std::size_t rank) {
  const Mesh& mesh = *lowered.mesh;
  if (sharding.named) return from_named(*sharding.named, lowered, rank);
  MESHARD_ASSIGN_OR_RETURN(TileAssignment tiles, to_tiles(sharding));
  Result<Sharding> read = sharding_from_tiles(mesh, tiles, rank);
  if (read.ok() || tiles.kind != TileKind::kTiled) return read;
  TileAssignment by_id = tiles.with_device_ids(mesh);
  for (const Mesh& other : lowered.meshes) {
    MESHARD_ASSIGN_OR_RETURN(TileAssignment by_position, by_id.with_positions(other));
    Result<Sharding> over_other = sharding_from_tiles(other, by_position, rank);
    if (over_other.ok()) return over_other;
  }
  MESHARD_ASSIGN_OR_RETURN(Sharding made, sharding_from_tiles(by_id, rank, mesh.size()));
  if (mesh.device_type().empty()) return made;
  return Sharding(made.mesh().with_device_type(mesh.device_type()), made.spec())
      .with_unreduced(made.unreduced_axes());
}

// The compiler's sharding for a value whose open dimensions specify their first axes. Adds the
// specified axes of size 1, which compilers omit.
Sharding with_said_axes(const Sharding& chosen, const Sharding& said) {
  if (chosen.mesh() != said.mesh() || chosen.rank() != said.rank()) return chosen;
  const Mesh& mesh = chosen.mesh();
  auto splits = [&](const AxisRef& axis) { return mesh.axis_size(axis) > 1; };
  std::vector<DimensionSpec> dimensions;
  for (std::size_t d = 0; d < said.rank(); ++d) {
    AxisList axes = said.axes(d);
    std::size_t next = 0;
    for (const AxisRef& axis : said.axes(d)) {
      if (!splits(axis)) continue;
      if (next == chosen.axes(d).size() || chosen.axes(d)[next] != axis) return chosen;
      ++next;
    }
    for (; next < chosen.axes(d).size(); ++next) axes.push_back(chosen.axes(d)[next]);
    dimensions.emplace_back(std::move(axes));
  }
  return Sharding(mesh, PartitionSpec(std::move(dimensions)));
}

// The module's shard shape is authoritative: with another one, the program would read the wrong
// data.
Result<void> check_shard_shape(const LoweredValue& value, const Sharding& sharding,
                               const HloShape& shape, std::string_view role, std::size_t i) {
  IntVector expected = sharding.shard_shape(value.padded.shape);
  if (std::equal(expected.begin(), expected.end(), shape.dimensions.begin(),
                 shape.dimensions.end()))
    return {};
  return InternalError(cat("[runtime] ", role, " ", i, " of type ", value.type, " with ", sharding,
                           " was compiled with shards of ", shape.to_string()));
}

Result<std::vector<std::optional<Sharding>>> read(const std::vector<LoweredValue>& values,
                                                  const std::vector<const HloShape*>& shapes,
                                                  const std::vector<const HloSharding*>& shardings,
                                                  const LoweredModule& lowered,
                                                  std::string_view role) {
  std::vector<std::optional<Sharding>> chosen;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const LoweredValue& value = values[i];
    std::size_t rank = static_cast<std::size_t>(value.type.rank());
    if (i >= shapes.size())
      return InternalError(cat("[runtime] ", role, " ", i, " is not in the compiled module"));
    bool exact = value.is_exact();
    Sharding sharding = exact ? *value.sharding : Sharding::replicated(*lowered.mesh, rank);
    if (!exact && i < shardings.size() && shardings[i]) {
      Result<Sharding> read = sharding_of(*shardings[i], lowered, rank);
      if (!read.ok())
        return read.error().with_note(cat("in the sharding of ", role, " ", i, ", ", value.type));
      sharding = value.sharding ? with_said_axes(*read, *value.sharding) : *std::move(read);
    }
    MESHARD_RETURN_IF_ERROR(check_shard_shape(value, sharding, *shapes[i], role, i));
    chosen.push_back(std::move(sharding));
  }
  return chosen;
}

}  // namespace

Result<ChosenShardings> read_shardings(const LoweredModule& lowered, const HloInterface& compiled) {
  ChosenShardings chosen;
  if (!lowered.mesh) {
    chosen.arguments.resize(lowered.arguments.size());
    chosen.results.resize(lowered.results.size());
    return chosen;
  }
  std::vector<const HloShape*> shapes;
  std::vector<const HloSharding*> shardings;
  for (const HloShape& shape : compiled.parameters) shapes.push_back(&shape);
  for (const HloSharding& sharding : compiled.parameter_shardings) shardings.push_back(&sharding);
  MESHARD_ASSIGN_OR_RETURN(chosen.arguments,
                           read(lowered.arguments, shapes, shardings, lowered, "argument"));

  shapes.clear();
  shardings.clear();
  if (compiled.result.is_tuple)
    for (const HloShape& shape : compiled.result.tuple) shapes.push_back(&shape);
  else
    shapes.push_back(&compiled.result);
  if (compiled.output_sharding) {
    const HloSharding& output = *compiled.output_sharding;
    bool tuple = output.kind == HloSharding::Kind::kTuple && !output.named;
    if (tuple)
      for (const HloSharding& each : output.tuple) shardings.push_back(&each);
    else
      shardings.assign(shapes.size(), &output);  // one for all
  }
  MESHARD_ASSIGN_OR_RETURN(chosen.results,
                           read(lowered.results, shapes, shardings, lowered, "result"));
  return chosen;
}

Result<Sharding> sharding_of(const HloSharding& sharding, const LoweredModule& lowered,
                             std::size_t rank) {
  try {
    return convert_or_throw(sharding, lowered, rank);
  } catch (const Error& error) {  // axes or devices that its mesh does not have
    return error;
  }
}

}  // namespace meshard
