// Tested in meshard/ops/collectives_test.cc.
#include "meshard/ops/internal/collective.h"

#include <type_traits>

#include "meshard/graph/annotate.h"
#include "meshard/graph/record.h"
#include "meshard/mesh/axes_index.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/attributes.h"

namespace meshard::internal::collective {

Tensor local_operand(const OpDef& op, const In& x) {
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor(op, x);
  const ManualAxes* place = internal::recorder().manual;
  bool is_deeper = place && place->depth() > manual_depth(operand.value());
  if (is_deeper && may_enter(operand.value(), *place))
    return widened(operand, place->with_varying({}));
  if (manual_axes(operand.value())) return operand;
  throw_invalid(where, "[", op.name, "] ", operand.type(), " made at ", operand.where(),
                " is a full value: collectives run on the local values of a function given to "
                "manual()");
}

void check_axes(std::string_view op, const ManualAxes& place, const AxisList& axes,
                SourceLocation where) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    std::optional<std::size_t> index = place.mesh.find_axis(axes[i].name);
    if (!index || !place.axes.contains(*index))
      throw_invalid(where, "[", op, "] axis ", axes[i], " is not manual here: the value is ",
                    place);
    for (std::size_t k = 0; k < i; ++k)
      if (axes[k].overlaps(axes[i]))
        throw_invalid(where, "[", op, "] axes ", axes[k], " and ", axes[i], " overlap");
  }
}

Group group_of(const OpDef& op, const Tensor& operand, const CollectiveAxes& axes,
               SourceLocation where) {
  const ManualAxes& place = *manual_axes(operand.value());
  where = effective_source(where);
  Group group{place.mesh.named(axes.list(), where), 1};
  check_axes(op.name, place, group.axes, where);
  for (const AxisRef& axis : group.axes) group.size *= place.mesh.axis_size(axis);
  return group;
}

Tensor varying_over(const Tensor& operand, const AxisList& axes) {
  const ManualAxes& place = *manual_axes(operand.value());
  return widened(operand, place.with_varying(place.varying | touched_axes(place.mesh, axes)));
}

AxisSet whole_axes(const Mesh& mesh, const AxisList& axes) {
  AxisList whole;
  for (const AxisRef& axis : axes)
    if (axis.is_whole()) whole.push_back(axis);
  return AxisSet(mesh, whole);
}

AxisSet touched_axes(const Mesh& mesh, const AxisList& axes) {
  AxisSet touched;
  for (const AxisRef& axis : axes) touched = touched | AxisSet(mesh, {AxisRef(axis.name)});
  return touched;
}

AxisList parts_of_axes(const AxisList& axes) {
  AxisList parts;
  for (const AxisRef& axis : axes)
    if (!axis.is_whole()) parts.push_back(axis);
  return parts;
}

const ManualAxes& checked_place(const Node& node, const AxisList& axes, std::int64_t size) {
  const Value& operand = node.operands()[0];
  const ManualAxes* place = manual_axes(operand);
  if (!place)
    fail_at(node, operand.type(), " made at ", operand->where(),
            " is a full value: collectives run inside manual axes");
  check_axes(node.op().name, *place, axes, node.where());
  std::int64_t members = 1;
  for (const AxisRef& axis : axes) members *= place->mesh.axis_size(axis);
  if (members != size)
    fail_at(node, "groups over ", meshard::to_string(axes), " of ", place->mesh, " have ", members,
            " members, not ", size);
  if (AxisSet missing = touched_axes(place->mesh, axes) - place->varying; !missing.empty())
    fail_at(node, operand.type(), " made at ", operand->where(), " does not vary over ",
            missing.to_string(place->mesh),
            ": all devices along it hold the same value. To count it once per device, widen it "
            "with vary()");
  return *place;
}

const AxisList* axes_of(const Node& node) {
  const AxisList* axes = nullptr;
  const Attributes* attributes = node.attributes();
  auto look = [&]<class T>(std::type_identity<T>) {
    if (attributes && attributes->type() == typeid(T)) axes = &node.attributes_as<T>().axes;
  };
  look(std::type_identity<AllReduceAttributes>());
  look(std::type_identity<AllGatherAttributes>());
  look(std::type_identity<ReduceScatterAttributes>());
  look(std::type_identity<AllToAllAttributes>());
  look(std::type_identity<CollectivePermuteAttributes>());
  return axes;
}

std::vector<AxisMove> moves_of(const Node& node) {
  const AxisList* axes = axes_of(node);
  if (!axes) return {};
  return {{*axes, 0, cat("devices along ", to_string(*axes), " exchange their local values")}};
}

std::vector<std::vector<std::int64_t>> logical_groups(const Mesh& mesh, const AxisList& axes,
                                                      const Mesh& numbering) {
  AxesIndex member(mesh, axes), base(mesh, remaining_axes(mesh, axes));
  std::vector<std::vector<std::int64_t>> groups(static_cast<std::size_t>(base.size()));
  for (std::int64_t g = 0; g < base.size(); ++g)
    for (std::int64_t k = 0; k < member.size(); ++k)
      groups[static_cast<std::size_t>(g)].push_back(
          *numbering.position(mesh.device_id(base.offset(g) + member.offset(k))));
  return groups;
}

stablehlo::OpWriter& write_channel(stablehlo::OpWriter& op, const OpEmission& out) {
  return op.raw("channel_handle",
                cat("#stablehlo.channel_handle<handle = ", out.channel, ", type = 1>"));
}

bool write_alone(std::int64_t group_size, OpEmission& out) {
  if (group_size > 1) return false;
  out.op("stablehlo.reshape").done();
  return true;
}

stablehlo::OpWriter& write_groups(stablehlo::OpWriter& op, const OpEmission& out,
                                  const AxisList& axes) {
  return write_channel(op, out).raw("replica_groups",
                                    rows_text(logical_groups(*out.mesh, axes, *out.numbering)));
}

std::string rows_text(const std::vector<std::vector<std::int64_t>>& rows) {
  std::string listed;
  for (const auto& row : rows)
    append(listed, cat(listed.empty() ? "[" : ", [", join(row, ", "), "]"));
  if (!rows.empty()) listed = cat("[", listed, "]");
  return cat("dense<", listed, "> : tensor<", rows.size(), "x", rows.empty() ? 2 : rows[0].size(),
             "xi64>");
}

}  // namespace meshard::internal::collective
