// The operations of mesh_ops.json, in terms of ours.
#pragma once
#include "tools/conformance/devicemesh/mesh_ops/state.h"

namespace meshard::conformance {

/// A handle that the program uses but no operation has made, because the one that should have
/// failed.
struct UndefinedHandle {};

/// The mesh behind a handle. @error UndefinedHandle
const MeshEntry& entry_of(const Json& handle, const ProgramState& state);

/// Makes the mesh of an operation that makes one: init, mesh, from_group (construct.cc); slice,
/// flatten, unflatten, concat (derive.cc).
/// @error Error, or GoldenError for what only the reference refuses
MeshEntry construct(const Json& op, const ProgramState& state);
MeshEntry derive(const Json& op, const ProgramState& state);

/// The answer to an operation that asks something: `{common}`, `{views}` or both. May add a handle
/// (all_submeshes).
/// @error as above
Json ask(const Json& op, int index, ProgramState& state);

/// The groups behind a dimension of a mesh, named, counted, or null.
struct Dimension {
  Mesh mesh;
  std::string axis;
};

/// The dimension that get_group and local_rank mean: the only one for null; a name that flatten has
/// registered at the root before one of the mesh's own; an index, counted from the end if negative.
/// @error GoldenError
Dimension dimension_of(const MeshEntry& entry, const Json& dim);

/// The axis that an index or a name means. @error GoldenError
std::size_t axis_index_of(const MeshEntry& entry, const Json& dim);

}  // namespace meshard::conformance
