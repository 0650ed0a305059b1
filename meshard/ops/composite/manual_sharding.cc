#include "meshard/ops/composite/manual_sharding.h"

#include "meshard/graph/record.h"
#include "meshard/mesh/global_mesh.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/operand.h"

namespace meshard {
namespace {

// The dimensions of a spec, all open.
PartitionSpec opened(const Sharding& sharding) {
  std::vector<DimensionSpec> dimensions;
  for (std::size_t d = 0; d < sharding.rank(); ++d)
    dimensions.push_back(DimensionSpec(sharding.axes(d), true));
  return PartitionSpec(std::move(dimensions));
}

}  // namespace

Mesh manual_mesh(const Mesh& mesh, SourceLocation where) {
  if (mesh.is_base()) return mesh;
  if (mesh.rows() == 1) return mesh.as_root(where);
  Mesh base = mesh.base();
  for (const MeshAxis& axis : mesh.axes()) {
    Result<AxisList> in_base = mesh.axes_in_base({AxisRef(axis.name)});
    bool same = in_base.ok() && in_base->size() == 1 && (*in_base)[0] == AxisRef(axis.name);
    if (!same && axis.size != 1)
      throw_invalid(where, "[manual] axis ", axis.name, " of ", mesh, " is not an axis of ", base,
                    ", and the devices of a slice are all those of its base: make a mesh with this "
                    "axis and all others (unflatten, rename), and name the manual axes");
  }
  return base;
}

Tensor enable_manual_sharding(In x, const Mesh& mesh, const PartitionSpec& spec,
                              std::optional<PadValue> pad) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  Tensor full = operand_tensor("enable_manual_sharding", x);
  if (!manual_axes(full.value())) {
    std::optional<Sharding> present = full.sharding();
    Sharding wanted(mesh, spec, static_cast<std::size_t>(full.shape().rank()), where);
    if (present && !present->is_equivalent_to(wanted, wanted.rank()))
      throw_invalid(where, "[enable_manual_sharding] ", full.type(), " made at ", full.where(),
                    " is already sharded differently, ", *present, ", not ", wanted,
                    ": use mark_sharding to reshard it");
    full = mark_sharding(In(full, where), wanted);
  }
  Mesh place = manual_mesh(mesh, where);
  Sharding sharding(place, spec, static_cast<std::size_t>(full.shape().rank()), where);
  return internal::enter_with_padding(full, sharding, AxisSet::all(place), pad,
                                      "enable_manual_sharding", where);
}

Tensor enable_manual_sharding(In x, const PartitionSpec& spec, std::optional<PadValue> pad) {
  SourceLocation where = effective_source(x.where);
  return enable_manual_sharding(In(operand_tensor("enable_manual_sharding", x), where),
                                require_global_mesh(where), spec, pad);
}

Tensor mark_manual_sharding(In x, const Mesh& mesh) {
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("mark_manual_sharding", x);
  if (const ManualAxes* inside = manual_axes(operand.value())) {
    Mesh place = manual_mesh(mesh, where);
    if (inside->same_place({place, AxisSet::all(place), {}})) return operand;
    throw_invalid(where, "[mark_manual_sharding] ", operand.type(), " made at ", operand.where(),
                  " is ", *inside, ", so it cannot also be manual over all of ", mesh);
  }
  return enable_manual_sharding(In(operand, where), mesh, P());
}

Tensor mark_manual_sharding(In x) {
  SourceLocation where = effective_source(x.where);
  return mark_manual_sharding(In(operand_tensor("mark_manual_sharding", x), where),
                              require_global_mesh(where));
}

Tensor disable_manual_sharding(In x, const PartitionSpec& spec, const Shape& full_shape) {
  SourceLocation where = effective_source(x.where);
  return disable_manual_sharding(In(operand_tensor("disable_manual_sharding", x), where),
                                 require_global_mesh(where), spec, full_shape);
}

Tensor disable_manual_sharding(In x, const Mesh& mesh, const PartitionSpec& spec,
                               const Shape& full_shape) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  Tensor local = operand_tensor("disable_manual_sharding", x);
  if (manual_axes(local.value())) return leave_manual(local, mesh, spec, full_shape, where);
  if (local.shape() != full_shape)
    throw_invalid(where, "[disable_manual_sharding] ", local.type(), " made at ", local.where(),
                  " is a full value, but does not have the full shape ", full_shape);
  return mark_sharding(In(local, where), mesh, spec);
}

Tensor leave_manual(const Tensor& local, const Mesh& mesh, const PartitionSpec& spec,
                    const std::optional<Shape>& full_shape, SourceLocation where) {
  auto rank = static_cast<std::size_t>(local.shape(where).rank());
  Sharding sharding(manual_mesh(mesh, where), spec, rank, where);
  Dimensions sizes = local.shape().sizes();
  for (std::size_t d = 0; d < rank; ++d) sizes[d] *= sharding.num_tiles(d);
  Tensor full = shard_to_full(In(local, where), sharding, full_shape ? *full_shape : Shape(sizes));
  bool all_manual = manual_axes(local.value())->axes == AxisSet::all(sharding.mesh());
  // Inside an enclosing region, the sharding of local values is over that region's mesh.
  Sharding said(manual_axes(full.value()) ? sharding.mesh() : mesh,
                all_manual ? spec : opened(sharding), rank, where);
  return sharding_constraint(In(full, where), said);
}

}  // namespace meshard
