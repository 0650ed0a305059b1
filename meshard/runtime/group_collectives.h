// Collectives on the shards of a tensor, outside manual functions.
#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/mesh/mesh.h"
#include "meshard/ops/all_reduce.h"
#include "meshard/ops/collective_axes.h"

namespace meshard {

/// What the collectives of PyTorch's process groups do, on a sharded tensor: each device's shard is
/// its local tensor, and the devices along `axes` of `mesh` are a group (Mesh::groups). `x` is
/// sharded over the mesh (or over the one that it is taken from), and split by all of the axes; a
/// value that is only recorded and has no sharding is computed first, outside of jit and grad. The
/// result is the tensor of the devices' new local values, by the same spec without the axes, but
/// for what is said below. They may be used in jit, and have derivatives: they are manual
/// functions of one collective each (see manual).
///
/// For tensors that are not parts of one, make the mesh of the group, Mesh::from_group, and a
/// sharded tensor of them, ShardedTensor::from_local.
///
/// @code
/// Mesh mesh({{"data", 2}, {"model", 2}});
/// Tensor x = mark_sharding(arange(8.0), mesh, P(axes("data", "model")));
/// all_reduce(x, mesh, "data");                  // [0+4, 1+5, 2+6, 3+7], split by "model"
/// all_gather(x, mesh, {"data", "model"});       // x itself, on every device
/// broadcast(x, mesh, "data", 1);                // [4, 5, 6, 7], split by "model"
/// @endcode
/// @error invalid argument: x has no sharding over this mesh, or is not split by an axis of the
/// group (all its devices hold the same); a dimension that its axes do not divide; else as the
/// function of this name inside manual.

/// Local values of the group summed (multiplied, the largest, smallest).
Tensor all_reduce(In x, const Mesh& mesh, const CollectiveAxes& axes,
                  ReduceKind kind = ReduceKind::kSum);
/// Local values of the group one after the other along `dimension`.
Tensor all_gather(In x, const Mesh& mesh, const CollectiveAxes& axes, std::int64_t dimension = 0);
/// The sum of the group's local values, split by the axes along `dimension`.
Tensor reduce_scatter(In x, const Mesh& mesh, const CollectiveAxes& axes,
                      std::int64_t dimension = 0);
/// Each device cuts its local value along `split`, sends a part to each of the group, and puts what
/// it gets one after the other along `concat`. The axes split dimension `split` of the result.
Tensor all_to_all(In x, const Mesh& mesh, const CollectiveAxes& axes, std::int64_t split,
                  std::int64_t concat);
/// The local value of member `source` of each group. @error no such member.
Tensor broadcast(In x, const Mesh& mesh, const CollectiveAxes& axes, std::int64_t source);

}  // namespace meshard
