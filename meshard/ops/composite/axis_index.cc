#include "meshard/ops/composite/axis_index.h"

#include "meshard/graph/body.h"
#include "meshard/graph/record.h"
#include "meshard/mesh/axes_index.h"
#include "meshard/ops/constant.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/internal/collective.h"
#include "meshard/ops/iota.h"
#include "meshard/ops/manual_values.h"
#include "meshard/ops/reshape.h"

namespace meshard {
using namespace internal;
namespace {

// Splits `table` into local values. In nested regions axis k of `axes` splits dimension k; in a
// single one all of them split the only dimension. A full value cannot enter a region inside a loop
// or branch of the region's function, so it enters before the loop.
Tensor enter_table(Tensor table, const ManualAxes& place, const AxisList& axes,
                   SourceLocation where) {
  for (std::size_t depth = 1; depth <= place.depth(); ++depth) {
    OutsideBodiesScope outside(depth);
    AxisSet own = place.at_depth(depth).own();
    std::vector<DimensionSpec> dimensions;
    if (place.depth() == 1) dimensions.emplace_back(axes);
    if (place.depth() > 1)  // each region splits along its own axes
      for (const AxisRef& axis : axes)
        dimensions.emplace_back(own.contains(place.mesh.axis_index(axis.name)) ? AxisList{axis}
                                                                               : AxisList());
    Sharding sharding(place.mesh, PartitionSpec(std::move(dimensions)), where);
    table = full_to_shard(In(table, where), sharding, own);
  }
  return table;
}

// Each device gets its element of a sharded list of all indices, so no device needs to know its own
// number.
Tensor index_along(const ManualAxes& place, const AxisList& axes, SourceLocation where) {
  collective::check_axes("axis_index", place, axes, where);
  AxisSet touched = collective::touched_axes(place.mesh, axes);
  bool whole = collective::parts_of_axes(axes).empty();
  AxisList split = whole ? axes : touched.of(place.mesh);
  AxesIndex all(place.mesh, split), wanted(place.mesh, axes);
  auto shaped = [&](const Tensor& numbers) {
    if (place.depth() == 1) return numbers;
    Dimensions sizes;
    for (const AxisRef& axis : split) sizes.push_back(place.mesh.axis_size(axis));
    return reshape(numbers, Shape(std::move(sizes)));
  };
  auto table = [&] {
    OutsideBodiesScope outside(1);
    if (whole) return shaped(iota(DType::i32, {all.size()}, 0, where));
    std::vector<std::int32_t> listed;
    for (std::int64_t i = 0; i < all.size(); ++i)
      listed.push_back(static_cast<std::int32_t>(wanted(all.offset(i))));
    return shaped(constant(HostArray::from_vector(std::move(listed)), where));
  };
  return reshape(enter_table(table(), place, split, where), {});
}

}  // namespace

Tensor axis_index(const CollectiveAxes& axes, SourceLocation where) {
  SourceScope line(where);
  where = effective_source(where);
  const ManualAxes* place = internal::recorder().manual;
  if (!place)
    throw_invalid(where, "[axis_index] ", to_string(axes.list()),
                  ": the index of a device is available only in a function given to manual()");
  return index_along(*place, axes.list(), where);
}

Tensor axis_index(In like, const CollectiveAxes& axes) {
  SourceScope line(like.where);
  SourceLocation where = effective_source(like.where);
  Tensor operand = operand_tensor("axis_index", like);
  const ManualAxes* place = manual_axes(operand.value());
  if (!place)
    throw_invalid(where, "[axis_index] ", operand.type(), " made at ", operand.where(),
                  " is a full value: the index of a device is available only inside manual axes");
  return index_along(*place, axes.list(), where);
}

}  // namespace meshard
