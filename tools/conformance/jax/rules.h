// The rules for answers recorded from JAX.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace meshard::conformance {

/// uneven-kept: a size that is not divisible keeps its sharding, where JAX raises IndivisibleError.
/// The size must not be divisible, and our shards must be the smallest that can hold all elements.
/// @param recorded JAX's answer for a field
/// @param our_tiles the sharding as HLO text
/// @param our_shard_shape, shape of a shard and of the whole
bool uneven_kept(const nlohmann::json& recorded, const std::string& our_tiles,
                 const nlohmann::json& our_shard_shape, const nlohmann::json& shape);

/// devices-in-any-order: meshes over the same devices can be combined in one program in any device
/// order, where JAX raises ValueError. The module must contain two meshes, one of them with its own
/// order.
bool devices_in_any_order(const std::string& module);

/// rounding: floats that another CPU rounds otherwise, because it has no instruction that
/// multiplies and adds with one rounding. Each may be off by four rounding errors of its dtype,
/// relative to the larger of 1 and the number; shape and dtype must be equal.
/// @param ours, recorded arrays as in random.json: `{shape, dtype, data}`
bool differs_by_rounding(const nlohmann::json& ours, const nlohmann::json& recorded);

}  // namespace meshard::conformance
