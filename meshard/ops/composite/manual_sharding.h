#pragma once
#include <optional>

#include "meshard/graph/annotation.h"
#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// What each device of `mesh` holds of `x` as `spec` splits it: x is marked first (mark_sharding),
/// so that a value that exists goes to the devices now. All axes of the mesh are manual from here
/// on, until disable_manual_sharding. manual() does both for a whole function. torch_xla's function
/// of this name.
/// @error as mark_sharding and full_to_shard; x is sharded otherwise: that would move data.
Tensor enable_manual_sharding(In x, const Mesh& mesh, const PartitionSpec& spec);
/// Over the global mesh (mesh/global_mesh.h). @error there is none; as above.
Tensor enable_manual_sharding(In x, const PartitionSpec& spec);

/// The full value of `full_shape` of which each device of `mesh` holds the local value `x`, as
/// `spec` splits it. A full value of that shape is only marked.
/// @error as shard_to_full; a full value of another shape.
Tensor disable_manual_sharding(In x, const Mesh& mesh, const PartitionSpec& spec,
                               const Shape& full_shape);
/// Over the global mesh. @error there is none; as above.
Tensor disable_manual_sharding(In x, const PartitionSpec& spec, const Shape& full_shape);

/// `x` as a local value of each device of `mesh`, of its own shape: enable_manual_sharding with a
/// spec that splits nothing. A local value inside all axes of that mesh is returned as it is. It
/// does not vary, so that all_reduce of it is an error; see vary. torch_xla's
/// `_mark_manual_sharding`.
/// @error as enable_manual_sharding; a value inside other manual axes.
Tensor mark_manual_sharding(In x, const Mesh& mesh);
/// Over the global mesh. @error there is none; as above.
Tensor mark_manual_sharding(In x);

/// The mesh that manual axes of `mesh` are said on: itself if all derive from it; for one that
/// derives from another and has all its devices, a mesh of its own over these; for a slice, the
/// mesh it was taken from.
/// @error a slice whose axes are not whole axes of that mesh.
Mesh manual_mesh(const Mesh& mesh, SourceLocation where);

/// shard_to_full, and the mark that the result lies so; along axes of `mesh` that are not manual it
/// is left open. Without a shape, local sizes are multiplied by the devices that split them.
/// @error as shard_to_full.
Tensor leave_manual(const Tensor& local, const Mesh& mesh, const PartitionSpec& spec,
                    const std::optional<Shape>& full_shape, SourceLocation where);

}  // namespace meshard
