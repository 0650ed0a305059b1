#include "meshard/ops/composite/manual.h"

#include "meshard/graph/annotate.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/operand.h"

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
      pad_(options.pad),
      where_(where) {
  place_.axes = manual_axes_of(mesh, place_.mesh, options, where);
}

ManualRegion ManualRegion::called_with(std::span<const Tensor> arguments) const {
  const ManualAxes* outer = internal::recorder().manual;
  for (const Tensor& argument : arguments)
    if (const ManualAxes* place = argument.defined() ? manual_axes(argument.value()) : nullptr;
        place && (!outer || place->is_inside(*outer)))
      outer = place;
  ManualRegion call = *this;
  if (!outer) return call;
  if (!(outer->mesh == place_.mesh))
    throw_invalid(where_, "[manual] a function over ", place_.mesh,
                  " is called inside one that is ", *outer,
                  ": the inner function must be over other axes of the same mesh");
  if (AxisSet twice = place_.axes & outer->axes; !twice.empty())
    throw_invalid(where_, "[manual] a function over ", place_.axes.to_string(place_.mesh), " of ",
                  place_.mesh, " is called inside one that is ", *outer, ": ",
                  twice.to_string(place_.mesh),
                  (AxisSet::all(place_.mesh) - outer->axes).empty()
                      ? cat(" is already manual, and the mesh has no other axis. Call the "
                            "collectives directly, without the inner function")
                      : cat(" is already manual. In ManualOptions::axes, name the axes of the "
                            "inner function, out of ",
                            (AxisSet::all(place_.mesh) - outer->axes).to_string(place_.mesh)));
  call.place_.around = outer->around;
  call.place_.around.push_back(outer->axes);
  call.place_.axes = outer->axes | place_.axes;
  return call;
}

// Checks that the spec does not use the axes of the enclosing function, which are already split.
void ManualRegion::check_spec(const PartitionSpec& spec, std::string_view which) const {
  if (place_.depth() == 1) return;
  for (const DimensionSpec& dimension : spec.dimensions())
    for (const AxisRef& axis : dimension.axes())
      if (std::optional<std::size_t> index = place_.mesh.find_axis(axis.name);
          index && place_.around.back().contains(*index))
        throw_invalid(where_, "[manual] ", which, " ", spec, " names axis ", axis, " of ",
                      place_.mesh, ", which is manual around this function, ", place_,
                      ": here a device has only its own part along this axis. Name ",
                      place_.own().to_string(place_.mesh), " only");
}

// Checks that a value that enters a nested function is local to the enclosing one, or may be used
// there.
void ManualRegion::check_enters(const Tensor& value) const {
  if (place_.depth() == 1) return;
  ManualAxes outer = place_.at_depth(place_.depth() - 1);
  if (may_enter(value.value(), outer)) return;
  const ManualAxes* place = manual_axes(value.value());
  throw_invalid(where_, "[manual] ", value.type(), " made at ", value.where(), " is ",
                place ? place->to_string() : std::string("a full value"),
                ", and is passed to a function inside one that is ", outer,
                ": pass it to the outer function as an argument first");
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
  if (Tensor wide = wide_number(full); wide.defined()) return number_like(full, enter(wide, spec));
  check_spec(spec, "in_spec");
  check_enters(full);
  Sharding sharding(place_.mesh, spec, static_cast<std::size_t>(type.rank()), where_);
  Tensor around = full;
  if (place_.depth() > 1) around = widened(full, place_.at_depth(place_.depth() - 1));
  return enter_with_padding(around, sharding, place_.own(), pad_, "manual", where_);
}

Tensor ManualRegion::leave(const Tensor& local, std::size_t i, std::size_t tensors) const {
  if (!local.defined()) throw_invalid(where_, "[manual] tensor ", i, " of the result has no value");
  if (out_specs_.size() != 1 && out_specs_.size() != tensors)
    throw_invalid(where_, "[manual] ", out_specs_.size(), " out_specs for ", tensors,
                  " tensors of the result: give one for all, or one for each");
  if (!out_shapes_.empty() && out_shapes_.size() != tensors)
    throw_invalid(where_, "[manual] ", out_shapes_.size(), " out_shapes for ", tensors,
                  " tensors of the result: give one for each");
  const PartitionSpec& spec = out_specs_[out_specs_.size() == 1 ? 0 : i];
  check_spec(spec, "out_spec");
  const ManualAxes* place = manual_axes(local.value());
  if (!may_enter(local.value(), place_) && (!place || place_.is_inside(*place)))
    throw_invalid(where_, "[manual] tensor ", i, " of the result, ", local.type(), " made at ",
                  local.where(), ", is ",
                  place ? cat("a value of the enclosing function, ", *place) : cat("a full value"),
                  ": return values that are computed from the arguments");
  bool enters = !place || place_.is_inside(*place);
  std::optional<Shape> shape;
  if (!out_shapes_.empty()) shape = out_shapes_[i];
  return leave_manual(enters ? widened(local, place_) : local, mesh_, spec, shape, where_);
}

}  // namespace meshard::internal
