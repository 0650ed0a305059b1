// The properties of a mesh, as mesh_ops.json records them.
#pragma once
#include <string>

#include "tools/conformance/devicemesh/mesh_ops/state.h"

namespace meshard::conformance {

/// `{common, views}` of a mesh that operation `op` made. @param name its handle, not yet added
Json mesh_facts(const MeshEntry& entry, int op, const std::string& name, ProgramState& state);

/// `[sizes, strides]` of an axis in the rank map of its root.
Json axis_json(const Layout& axis);

/// The names of all axes; null for a mesh without names.
Json names_json(const MeshEntry& entry);

std::vector<std::int64_t> ids_of(const RankMap& ranks);

}  // namespace meshard::conformance
