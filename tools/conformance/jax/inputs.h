// What the inputs of JAX's cases are made of: meshes by name and partition specs.
#pragma once
#include <string>

#include "meshard/mesh/mesh.h"
#include "meshard/sharding/partition_spec.h"
#include "tools/conformance/suite.h"

namespace meshard::conformance {

/// The mesh that the file's meta calls so, or that of `named_sharding.json` beside it.
/// @error std::exception if neither knows it.
Mesh jax_mesh(const std::string& name, const GoldenFile& file);

/// A list with an entry for each dimension: null, an axis, a list of axes, or `"*"` for an open
/// one.
PartitionSpec jax_spec(const Json& entries);

}  // namespace meshard::conformance
