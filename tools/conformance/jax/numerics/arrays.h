// Arrays of JAX's cases: `{shape, dtype, data}`, flat and row-major.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "meshard/array/host_array.h"

namespace meshard::conformance {

/// The dtype that JAX calls so. @error std::runtime_error if meshard has none.
DType dtype_in_jax(const std::string& name);

/// The array of these elements, flat and row-major: numbers, bools, pairs for complex ones; strings
/// for what is not finite.
HostArray host_array_of(DType dtype, const Shape& shape, const nlohmann::json& data);
/// The other way. Bools are bools.
nlohmann::json data_of(const HostArray& array);

/// The array; non-finite numbers are strings. @error as dtype_in_jax.
HostArray array_in_jax(const nlohmann::json& fields);
std::vector<HostArray> arrays_in_jax(const nlohmann::json& list);

/// The other way.
nlohmann::json json_in_jax(const HostArray& array);

/// What is different between `ours` and `recorded`, both as JSON; empty if dtypes and shapes are
/// equal, integers and bools too, and no float is further from the recorded one than `distance` or
/// four units in the last place of the largest recorded one, whichever is more.
std::string array_difference(const nlohmann::json& ours, const nlohmann::json& recorded,
                             double distance);

}  // namespace meshard::conformance
