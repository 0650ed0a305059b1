// The rules about answers recorded from JAX.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace meshard::conformance {

/// uneven-kept: a size that does not divide keeps its sharding, where JAX raises IndivisibleError.
/// The size must really not divide, and our shards be the smallest that hold it all.
/// @param recorded what JAX said to a field
/// @param our_tiles the sharding as HLO text
/// @param our_shard_shape, shape of a shard and of the whole
bool uneven_kept(const nlohmann::json& recorded, const std::string& our_tiles,
                 const nlohmann::json& our_shard_shape, const nlohmann::json& shape);

/// devices-in-any-order: meshes over the same devices meet in one program in any order of them,
/// where JAX raises ValueError. The module must really name two meshes, one of them with its own
/// order.
bool devices_in_any_order(const std::string& module);

}  // namespace meshard::conformance
