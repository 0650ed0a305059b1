// Reads and writes arrays of JAX's cases: `{shape, dtype, data}`, flat and row-major.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "meshard/array/host_array.h"

namespace meshard::conformance {

/// The dtype with this name in JAX. @error std::runtime_error if meshard has none.
DType dtype_in_jax(const std::string& name);

/// The array with these elements, flat and row-major: numbers, bools, pairs for complex numbers,
/// strings for non-finite numbers.
HostArray host_array_of(DType dtype, const Shape& shape, const nlohmann::json& data);
/// The inverse. Bools are JSON bools.
nlohmann::json data_of(const HostArray& array);

/// The array; non-finite numbers are strings. @error as dtype_in_jax.
HostArray array_in_jax(const nlohmann::json& fields);
std::vector<HostArray> arrays_in_jax(const nlohmann::json& list);

/// The inverse.
nlohmann::json json_in_jax(const HostArray& array);

/// The difference between `ours` and `recorded`, both as JSON. Empty if dtypes, shapes, integers
/// and bools are equal, and no float differs from the recorded one by more than `distance` or four
/// units in the last place of the largest recorded one, whichever is greater.
std::string array_difference(const nlohmann::json& ours, const nlohmann::json& recorded,
                             double distance);

}  // namespace meshard::conformance
