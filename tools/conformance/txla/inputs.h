// What the inputs of torch_xla's cases are made of: meshes, partition specs, host arrays.
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

/// The mesh of the fields `device_ids` (0, 1, ... if missing), `mesh_shape` and `axis_names`;
/// without names the axes are called `axis_0`, `axis_1`, ...
/// @error what Mesh throws.
Mesh mesh_of(const nlohmann::json& fields);

/// A partition spec with indices for names: each entry null, an index, or a list of these.
/// @error an entry of another kind or a deeper list, as the reference's; a name of no axis.
nlohmann::json translated_spec(const nlohmann::json& entries, const Mesh& mesh);

/// A list with an entry for each dimension: null, an axis by name or index, or a list of these.
/// @error as translated_spec; an index that is no axis of the mesh, as the reference's.
PartitionSpec spec_of(const nlohmann::json& entries, const Mesh& mesh);

/// The sharding of the fields of a mesh and `partition_spec`. To the reference a dimension split by
/// no axes, `[]`, is not the same as null: it takes part in the tile assignment with size 1. Here
/// it is split by an axis of size 1 that is added to the mesh.
/// @error as mesh_of, spec_of and Sharding; `[]` beside an axis, as the reference's.
Sharding sharding_of(const nlohmann::json& fields);

/// An array of `data`: a row-major list, `{"iota": a}` for a, a + 1, ..., or the words `row-major
/// 1..numel`. Integers wrap around to narrower ones; as bool, all but 0 is true.
HostArray host_array_of(const nlohmann::json& data, const Shape& shape, DType dtype);

/// The elements, row-major, as numbers; bools are 0 and 1.
nlohmann::json numbers_of(const HostArray& array);

}  // namespace meshard::conformance
