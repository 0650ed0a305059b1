#pragma once
#include <optional>

#include "meshard/graph/annotation.h"
#include "meshard/graph/tensor.h"
#include "meshard/ops/composite/uneven_parts.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// Each device's part of `x`, as `spec` splits it. x is marked first (mark_sharding), so a value
/// that already exists is placed on the devices now. From here on, all axes of the mesh are manual,
/// until disable_manual_sharding. manual() does both for a whole function. torch_xla's function of
/// this name. `pad` is the padding of the last parts if the devices do not divide a dimension.
/// @error as mark_sharding and full_to_shard; x has another sharding, so that data would have to
/// move; a dimension does not divide evenly and no padding is given.
Tensor enable_manual_sharding(In x, const Mesh& mesh, const PartitionSpec& spec,
                              std::optional<PadValue> pad = std::nullopt);
/// The same over the global mesh (mesh/global_mesh.h).
/// @error failed precondition: no global mesh is set; the errors of the overload with a mesh
Tensor enable_manual_sharding(In x, const PartitionSpec& spec,
                              std::optional<PadValue> pad = std::nullopt);

/// The full value of which each device of `mesh` holds the local value `x`. Its shape is
/// `full_shape`, split by `spec`. If x is already a full value of that shape, it is only marked.
/// @error as shard_to_full; a full value of another shape.
Tensor disable_manual_sharding(In x, const Mesh& mesh, const PartitionSpec& spec,
                               const Shape& full_shape);
/// The same over the global mesh.
/// @error failed precondition: no global mesh is set; the errors of the overload with a mesh
Tensor disable_manual_sharding(In x, const PartitionSpec& spec, const Shape& full_shape);

/// `x` as a local value on each device of `mesh`, with the shape of x. It is enable_manual_sharding
/// with a spec that splits nothing. A local value inside all axes of that mesh is returned
/// unchanged. The result does not vary, so all_reduce of it is an error; see vary. torch_xla's
/// `_mark_manual_sharding`.
/// @error as enable_manual_sharding; a value inside other manual axes.
Tensor mark_manual_sharding(In x, const Mesh& mesh);
/// The same over the global mesh.
/// @error failed precondition: no global mesh is set; the errors of the overload with a mesh
Tensor mark_manual_sharding(In x);

/// The mesh over which the manual axes of `mesh` are expressed. It is `mesh` itself if it is a
/// base, a new root mesh if `mesh` is derived and has all devices of its base, and the mesh it was
/// taken from if it is a slice.
/// @error a slice whose axes are not whole axes of that mesh.
Mesh manual_mesh(const Mesh& mesh, SourceLocation where);

/// shard_to_full, followed by a mark with the sharding of the result. Dimensions stay open if some
/// axes of `mesh` are not manual. Without a shape, local sizes are multiplied by the number of
/// devices that split them.
/// @error as shard_to_full.
Tensor leave_manual(const Tensor& local, const Mesh& mesh, const PartitionSpec& spec,
                    const std::optional<Shape>& full_shape, SourceLocation where);

}  // namespace meshard
