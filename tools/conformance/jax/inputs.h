// Reads the inputs of JAX's cases: meshes by name, and partition specs.
#pragma once
#include <string>

#include "meshard/mesh/mesh.h"
#include "meshard/sharding/partition_spec.h"
#include "tools/conformance/suite.h"

namespace meshard::conformance {

/// The mesh with this name in the file's meta, or in `named_sharding.json` in the same folder.
/// @error std::exception if neither has it.
Mesh jax_mesh(const std::string& name, const GoldenFile& file);

/// Reads a list with an entry for each dimension: null, an axis, a list of axes, or `"*"` for an
/// open dimension.
PartitionSpec jax_spec(const Json& entries);

}  // namespace meshard::conformance
