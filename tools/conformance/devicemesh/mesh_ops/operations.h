// The operations of mesh_ops.json, implemented with meshard.
#pragma once
#include "tools/conformance/devicemesh/mesh_ops/state.h"

namespace meshard::conformance {

/// A handle that the program uses although no operation has made it, because that operation failed.
struct UndefinedHandle {};

/// The mesh of a handle. @error UndefinedHandle
const MeshEntry& entry_of(const Json& handle, const ProgramState& state);

/// Makes the mesh of an operation: init, mesh, from_group (construct.cc); slice, flatten,
/// unflatten, concat (derive.cc).
/// @error Error, or GoldenError for an error that only the reference reports
MeshEntry construct(const Json& op, const ProgramState& state);
MeshEntry derive(const Json& op, const ProgramState& state);

/// The result of a query: `{common}`, `{views}` or both. May add a handle (all_submeshes).
/// @error as above
Json ask(const Json& op, int index, ProgramState& state);

/// The groups along one dimension of a mesh, selected by name, by index, or by null.
struct Dimension {
  Mesh mesh;
  std::string axis;
};

/// The dimension that get_group and local_rank select. Null: the only one. A name: one that flatten
/// has registered at the root takes precedence over the mesh's own. An index: counted from the end
/// if negative.
/// @error GoldenError
Dimension dimension_of(const MeshEntry& entry, const Json& dim);

/// The axis that an index or a name selects. @error GoldenError
std::size_t axis_index_of(const MeshEntry& entry, const Json& dim);

}  // namespace meshard::conformance
