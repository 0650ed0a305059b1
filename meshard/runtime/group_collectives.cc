#include "meshard/runtime/group_collectives.h"

#include <algorithm>

#include "meshard/graph/evaluator.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/operand.h"

namespace meshard {
namespace {

// A tensor, and the group whose devices combine their shards of it.
struct Grouped {
  Tensor x;
  Sharding sharding;  // of x
  AxisList axes;      // of sharding.mesh()
  std::int64_t size = 1;
  SourceLocation where;
};

bool contains(const AxisList& axes, const AxisRef& axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

Grouped grouped(std::string_view op, In x, const Mesh& mesh, const CollectiveAxes& axes) {
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor(op, x);
  std::optional<Sharding> sharding = operand.sharding();
  if (!sharding && !only_recording()) {  // use the compiler's choice
    compute(std::span(&operand, 1), where);
    sharding = operand.sharding();
  }
  Mesh base = mesh.base();
  if (!sharding || !(sharding->mesh() == base))
    throw_invalid(where, "[", op, "] ", operand.type(), " made at ", operand.where(),
                  sharding ? cat(" is sharded over ", sharding->mesh()) : " has no sharding",
                  ", but the group is part of ", base,
                  ": use mark_sharding to shard it over that mesh");
  Result<AxisList> in_base = mesh.axes_in_base(axes.list());
  if (!in_base.ok()) throw in_base.error().at(where);
  Grouped group{operand, sharding->with_rank(static_cast<std::size_t>(operand.rank())), *in_base, 1,
                where};
  for (const AxisRef& axis : group.axes) {
    bool splits = false;
    for (std::size_t d = 0; d < group.sharding.rank(); ++d)
      splits = splits || contains(group.sharding.axes(d), axis);
    if (!splits)
      throw_invalid(where, "[", op, "] axis ", axis, " does not split ", operand.type(), " with ",
                    group.sharding, ": all devices along it hold the same values");
    group.size *= base.axis_size(axis);
  }
  if (!group.sharding.is_even(operand.shape()))
    throw_invalid(where, "[", op, "] ", operand.type(), " does not divide evenly by ",
                  group.sharding, ": the local values of the devices would have different shapes");
  return group;
}

// The dimensions of x's spec without the axes of the group.
std::vector<DimensionSpec> without_axes(const Grouped& group) {
  std::vector<DimensionSpec> dimensions;
  for (std::size_t d = 0; d < group.sharding.rank(); ++d) {
    AxisList kept;
    for (const AxisRef& axis : group.sharding.axes(d))
      if (!contains(group.axes, axis)) kept.push_back(axis);
    dimensions.push_back(DimensionSpec(std::move(kept)));
  }
  return dimensions;
}

// The same, with the axes of the group appended to dimension d.
std::vector<DimensionSpec> moved_to(const Grouped& group, std::string_view op, std::int64_t d) {
  std::vector<DimensionSpec> dimensions = without_axes(group);
  std::int64_t rank = group.x.rank(), dimension = d < 0 ? d + rank : d;
  if (dimension < 0 || dimension >= rank)
    throw_invalid(group.where, "[", op, "] dimension ", d, " is out of range for ", group.x.type());
  AxisList all = dimensions[static_cast<std::size_t>(dimension)].axes();
  for (const AxisRef& axis : group.axes) all.push_back(axis);
  dimensions[static_cast<std::size_t>(dimension)] = DimensionSpec(std::move(all));
  return dimensions;
}

template <class F>
Tensor on_shards(const Grouped& group, std::vector<DimensionSpec> out, const F& f) {
  SourceScope line(group.where);
  std::vector<DimensionSpec> in;  // closed: open dimensions do not specify how the value is sharded
  for (std::size_t d = 0; d < group.sharding.rank(); ++d) in.push_back(group.sharding.axes(d));
  auto run = manual(group.sharding.mesh(), PartitionSpec(std::move(in)),
                    PartitionSpec(std::move(out)), f, {}, group.where);
  return run(group.x);
}

}  // namespace

Tensor all_reduce(In x, const Mesh& mesh, const CollectiveAxes& axes, ReduceKind kind) {
  Grouped group = grouped("all_reduce", x, mesh, axes);
  return on_shards(group, without_axes(group),
                   [&](const Tensor& part) { return all_reduce(part, group.axes, kind); });
}

Tensor all_gather(In x, const Mesh& mesh, const CollectiveAxes& axes, std::int64_t dimension) {
  Grouped group = grouped("all_gather", x, mesh, axes);
  return on_shards(group, without_axes(group), [&](const Tensor& part) {
    return all_gather_invariant(part, group.axes, dimension);
  });
}

Tensor reduce_scatter(In x, const Mesh& mesh, const CollectiveAxes& axes, std::int64_t dimension) {
  Grouped group = grouped("reduce_scatter", x, mesh, axes);
  return on_shards(group, moved_to(group, "reduce_scatter", dimension),
                   [&](const Tensor& part) { return reduce_scatter(part, group.axes, dimension); });
}

Tensor all_to_all(In x, const Mesh& mesh, const CollectiveAxes& axes, std::int64_t split,
                  std::int64_t concat) {
  Grouped group = grouped("all_to_all", x, mesh, axes);
  return on_shards(group, moved_to(group, "all_to_all", split),
                   [&](const Tensor& part) { return all_to_all(part, group.axes, split, concat); });
}

Tensor broadcast(In x, const Mesh& mesh, const CollectiveAxes& axes, std::int64_t source) {
  Grouped group = grouped("broadcast", x, mesh, axes);
  if (source < 0 || source >= group.size)
    throw_invalid(group.where, "[broadcast] source ", source, " is out of range for groups of ",
                  group.size, " devices along ", to_string(group.axes), " of ",
                  group.sharding.mesh());
  return on_shards(group, without_axes(group), [&](const Tensor& part) {
    Tensor chosen = equal(axis_index(group.axes), source);
    Tensor mine = where(chosen, part, zeros_like(part));
    bool truth = part.dtype() == DType::bool_;
    return all_reduce(mine, group.axes, truth ? ReduceKind::kMax : ReduceKind::kSum);
  });
}

}  // namespace meshard
