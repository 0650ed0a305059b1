#include "meshard/runtime/chosen_shardings.h"

#include <algorithm>

namespace meshard {
namespace {

// True if `named` is `mesh` as the compiler sees it, with logical devices instead of ids.
bool is_named(const Mesh& named, const Mesh& mesh, const Mesh& numbering, bool any_order) {
  if (!std::equal(named.axes().begin(), named.axes().end(), mesh.axes().begin(), mesh.axes().end(),
                  [](const MeshAxis& a, const MeshAxis& b) {
                    return a.name == b.name && a.size == b.size;
                  }))
    return false;
  if (any_order) return true;
  for (std::int64_t p = 0; p < mesh.size(); ++p)
    if (numbering.position(mesh.device_id(p)) != named.device_id(p)) return false;
  return true;
}

// Newer plugins write axis names, of one of our meshes or of one like it: then its axes are meant.
// Otherwise, and for other plugins, the axes are found by the devices. A sharding that combines two
// meshes, or uses sub-axes of sub-axes, gets a mesh of its own.
Result<Sharding> convert_or_throw(const HloSharding& sharding, const LoweredModule& lowered,
                                  std::size_t rank) {
  if (sharding.tiles.is_tuple())
    return Error(ErrorCode::kUnimplemented, "[runtime] expected a single sharding, got a tuple");
  const Mesh& mesh = *lowered.mesh;
  const TileAssignment& tiles = sharding.tiles.elements()[0];
  for (const Sharding& named : sharding.named)
    for (const Mesh& each : lowered.meshes)
      if (is_named(named.mesh(), each, mesh, tiles.kind == TileKind::kUnknown))
        return Sharding(each, named.spec(), rank).with_unreduced_of(named);
  Result<Sharding> read = sharding_from_tiles(mesh, tiles, rank);
  if (read.ok() || tiles.kind != TileKind::kTiled || !tiles.validate().ok()) return read;
  TileAssignment by_id = tiles.with_device_ids(mesh);
  for (const Mesh& other : lowered.meshes) {
    MESHARD_ASSIGN_OR_RETURN(TileAssignment by_position, by_id.with_positions(other));
    Result<Sharding> over_other = sharding_from_tiles(other, by_position, rank);
    if (over_other.ok()) return over_other;
  }
  MESHARD_ASSIGN_OR_RETURN(Sharding made, sharding_from_tiles(by_id, rank, mesh.size()));
  if (mesh.device_type().empty()) return made;
  return Sharding(made.mesh().with_device_type(mesh.device_type()), made.spec())
      .with_unreduced_of(made);
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
                                                  const std::vector<HloSharding>& shardings,
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
    if (!exact && i < shardings.size()) {
      Result<Sharding> read = sharding_of(shardings[i], lowered, rank);
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
  for (const HloShape& shape : compiled.parameters) shapes.push_back(&shape);
  MESHARD_ASSIGN_OR_RETURN(
      chosen.arguments,
      read(lowered.arguments, shapes, compiled.parameter_shardings, lowered, "argument"));

  shapes.clear();
  if (compiled.result.is_tuple)
    for (const HloShape& shape : compiled.result.tuple) shapes.push_back(&shape);
  else
    shapes.push_back(&compiled.result);
  std::vector<HloSharding> shardings;
  if (compiled.output_sharding) shardings = compiled.output_sharding->of_values(shapes.size());
  MESHARD_ASSIGN_OR_RETURN(chosen.results,
                           read(lowered.results, shapes, shardings, lowered, "result"));
  return chosen;
}

Result<Sharding> sharding_of(const HloSharding& sharding, const LoweredModule& lowered,
                             std::size_t rank) {
  // axes or devices that its mesh does not have
  return caught([&] { return convert_or_throw(sharding, lowered, rank); });
}

}  // namespace meshard
