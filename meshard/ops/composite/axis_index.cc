#include "meshard/ops/composite/axis_index.h"

#include "meshard/graph/record.h"
#include "meshard/mesh/axes_index.h"
#include "meshard/ops/collective.h"
#include "meshard/ops/constant.h"
#include "meshard/ops/full_to_shard.h"
#include "meshard/ops/iota.h"
#include "meshard/ops/operand.h"
#include "meshard/ops/reshape.h"

namespace meshard {
namespace {

// Every device takes its element from a sharded list of all indices, so no device has to know its
// own number.
Tensor index_along(const ManualAxes& place, const AxisList& axes, SourceLocation where) {
  collective::check_axes("axis_index", place, axes, where);
  AxisSet touched = collective::touched_axes(place.mesh, axes);
  bool whole = collective::parts_of_axes(axes).empty();
  AxisList split = whole ? axes : touched.of(place.mesh);
  AxesIndex all(place.mesh, split), wanted(place.mesh, axes);
  Tensor indices;
  if (whole) {
    indices = iota(DType::i32, {all.size()}, 0, where);
  } else {
    std::vector<std::int32_t> listed;
    for (std::int64_t i = 0; i < all.size(); ++i)
      listed.push_back(static_cast<std::int32_t>(wanted(all.offset(i))));
    indices = constant(HostArray::from_vector(std::move(listed)), where);
  }
  Sharding sharding(place.mesh, P(DimensionSpec(split)), where);
  return reshape(full_to_shard(In(indices, where), sharding, place.axes), {});
}

}  // namespace

Tensor axis_index(const CollectiveAxes& axes, SourceLocation where) {
  SourceScope line(where);
  where = effective_source(where);
  const ManualAxes* place = recorder().manual;
  if (!place)
    throw_invalid(where, "[axis_index] ", to_string(axes.list()),
                  ": devices are told apart only in a function given to manual()");
  return index_along(*place, axes.list(), where);
}

Tensor axis_index(In like, const CollectiveAxes& axes) {
  SourceScope line(like.where);
  SourceLocation where = effective_source(like.where);
  Tensor operand = operand_tensor("axis_index", like);
  const ManualAxes* place = manual_axes(operand.value());
  if (!place)
    throw_invalid(where, "[axis_index] ", operand.type(), " made at ", operand.where(),
                  " is a full value: devices are told apart only inside manual axes");
  return index_along(*place, axes.list(), where);
}

}  // namespace meshard
