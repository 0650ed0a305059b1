// Collectives on the shards of a tensor, outside manual functions.
#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/mesh/mesh.h"
#include "meshard/ops/collectives.h"

namespace meshard {

/// The functions below are the collectives of PyTorch's process groups, for sharded tensors. Each
/// device's shard is its local tensor, and the devices along `axes` of `mesh` are a group
/// (Mesh::groups). `x` must be sharded over the mesh (or over the mesh that it was derived from),
/// and split by all of the axes. A recorded value without a sharding is computed first, outside of
/// jit and grad. The result is the tensor of the devices' new local values, with the same spec
/// without the axes, unless noted below. The functions may be used in jit and have derivatives:
/// each is a manual function with one collective (see manual).
///
/// For separate tensors, make the mesh of the group (Mesh::from_group) and a sharded tensor of them
/// (ShardedTensor::from_local).
///
/// @code
/// Mesh mesh({{"data", 2}, {"model", 2}});
/// Tensor x = mark_sharding(arange(8.0), mesh, P(axes("data", "model")));
/// all_reduce(x, mesh, "data");                  // [0+4, 1+5, 2+6, 3+7], split by "model"
/// all_gather(x, mesh, {"data", "model"});       // x itself, on every device
/// broadcast(x, mesh, "data", 1);                // [4, 5, 6, 7], split by "model"
/// @endcode
/// @error invalid argument: x has no sharding over this mesh, or an axis of the group does not
/// split it (all devices along the axis hold the same values); a dimension is not divisible by its
/// axes; otherwise as for the function of this name inside manual.

/// The sum (product, maximum, minimum) of the group's local values.
Tensor all_reduce(In x, const Mesh& mesh, const CollectiveAxes& axes,
                  ReduceKind kind = ReduceKind::kSum);
/// Concatenates the group's local values along `dimension`.
Tensor all_gather(In x, const Mesh& mesh, const CollectiveAxes& axes, std::int64_t dimension = 0);
/// The sum of the group's local values, split by the axes along `dimension`.
Tensor reduce_scatter(In x, const Mesh& mesh, const CollectiveAxes& axes,
                      std::int64_t dimension = 0);
/// Exchanges parts of the group's local values. Each device splits its local value along `split`,
/// sends one part to each device of the group, and concatenates the received parts along `concat`.
/// The axes split dimension `split` of the result.
Tensor all_to_all(In x, const Mesh& mesh, const CollectiveAxes& axes, std::int64_t split,
                  std::int64_t concat);
/// The local value of member `source` of each group. @error there is no such member.
Tensor broadcast(In x, const Mesh& mesh, const CollectiveAxes& axes, std::int64_t source);

}  // namespace meshard
