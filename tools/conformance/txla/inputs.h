// Reads the inputs of torch_xla's cases: meshes, partition specs, host arrays.
#pragma once
#include <nlohmann/json.hpp>
#include <string_view>

#include "meshard/array/host_array.h"
#include "meshard/mesh/mesh.h"
#include "meshard/sharding/sharding.h"

namespace meshard::conformance {

/// A list of integers as a shape.
Shape shape_of(const nlohmann::json& sizes);
/// A shape as a list of integers.
nlohmann::json list_of(const Shape& shape);

/// `float32`, `int64`, `bool`, ... @error unimplemented for a dtype that meshard lacks.
DType dtype_named(std::string_view name);

/// The mesh with the fields `device_ids` (default: 0, 1, ...), `mesh_shape` and `axis_names`
/// (default: `axis_0`, `axis_1`, ...).
/// @error as Mesh.
Mesh mesh_of(const nlohmann::json& fields);

/// Translates a partition spec from names to indices: each entry is null, an index, or a list of
/// these.
/// @error as the reference's: an entry of another type or a nested list; an unknown axis name.
nlohmann::json translated_spec(const nlohmann::json& entries, const Mesh& mesh);

/// Reads a list with an entry for each dimension: null, an axis by name or index, or a list of
/// these.
/// @error as translated_spec; as the reference's: an index that is not an axis of the mesh.
PartitionSpec spec_of(const nlohmann::json& entries, const Mesh& mesh);

/// The sharding with the fields of a mesh and `partition_spec`. For the reference, a dimension that
/// is split by no axes, `[]`, is not the same as null: it has size 1 in the tile assignment. Here,
/// such a dimension is split by an axis of size 1 that is added to the mesh.
/// @error as mesh_of, spec_of and Sharding; as the reference's: `[]` next to an axis.
Sharding sharding_of(const nlohmann::json& fields);

/// An array of `data`: a row-major list, `{"iota": a}` for a, a + 1, ..., or the text `row-major
/// 1..numel`. Integers wrap around in narrower types; as bool, all values except 0 are true.
HostArray host_array_of(const nlohmann::json& data, const Shape& shape, DType dtype);

/// The elements, row-major, as numbers; bools are 0 and 1.
nlohmann::json numbers_of(const HostArray& array);

}  // namespace meshard::conformance
