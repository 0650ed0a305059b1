#include "meshard/ops/composite/manual.h"

#include "meshard/graph/annotate.h"
#include "meshard/ops/composite/manual_sharding.h"
#include "meshard/ops/full_to_shard.h"
#include "meshard/ops/vary.h"

namespace meshard::internal {
namespace {

AxisSet manual_axes_of(const Mesh& mesh, const Mesh& place, const ManualOptions& options,
                       SourceLocation where) {
  AxisList axes;
  for (const std::string& name : options.axes) axes.push_back(AxisRef(name));
  if (axes.empty())
    for (const MeshAxis& axis : mesh.axes()) axes.push_back(AxisRef(axis.name));
  return AxisSet(place, axes, where);
}

}  // namespace

ManualRegion::ManualRegion(const Mesh& mesh, SpecList in_specs, SpecList out_specs,
                           const ManualOptions& options, SourceLocation where)
    : mesh_(mesh),
      place_{manual_mesh(mesh, where), {}, {}},
      in_specs_(std::move(in_specs)),
      out_specs_(std::move(out_specs)),
      out_shapes_(options.out_shapes),
      where_(where) {
  place_.axes = manual_axes_of(mesh, place_.mesh, options, where);
}

void ManualRegion::check_not_nested() const {
  if (const ManualAxes* inside = recorder().manual)
    throw_invalid(where_, "[manual] manual functions do not nest: this one is called inside one ",
                  *inside, ". Name the axes of both in one");
}

const PartitionSpec& ManualRegion::in_spec(std::size_t i, std::size_t tensors, std::size_t argument,
                                           std::size_t arguments) const {
  bool by_argument = in_specs_.size() == arguments;
  if (!by_argument && in_specs_.size() != tensors)
    throw_invalid(where_, "[manual] ", in_specs_.size(), " in_specs for ", arguments,
                  " arguments with ", tensors,
                  " tensors: give one for each argument, or one for "
                  "each tensor");
  return in_specs_[by_argument ? argument : i];
}

Tensor ManualRegion::enter(const Tensor& full, const PartitionSpec& spec) const {
  const TensorType& type = full.type(where_);
  Sharding sharding(place_.mesh, spec, static_cast<std::size_t>(type.rank()), where_);
  return full_to_shard(In(full, where_), sharding, place_.axes);
}

Tensor ManualRegion::leave(const Tensor& local, std::size_t i, std::size_t tensors) const {
  if (!local.defined()) throw_invalid(where_, "[manual] tensor ", i, " of the result has no value");
  if (out_specs_.size() != 1 && out_specs_.size() != tensors)
    throw_invalid(where_, "[manual] ", out_specs_.size(), " out_specs for ", tensors,
                  " tensors of the result: give one for all, or one for each");
  if (!out_shapes_.empty() && out_shapes_.size() != tensors)
    throw_invalid(where_, "[manual] ", out_shapes_.size(), " out_shapes for ", tensors,
                  " tensors of the result");
  Tensor inside = local;
  if (!manual_axes(local.value())) {
    if (!is_free(local.value()))
      throw_invalid(where_, "[manual] tensor ", i, " of the result, ", local.type(), " made at ",
                    local.where(),
                    ", is a full value: return what was computed from the arguments");
    inside = widened(local, place_);
  }
  std::optional<Shape> shape;
  if (!out_shapes_.empty()) shape = out_shapes_[i];
  return leave_manual(inside, mesh_, out_specs_[out_specs_.size() == 1 ? 0 : i], shape, where_);
}

}  // namespace meshard::internal
