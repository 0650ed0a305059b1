// What torch_xla records about a sharding, in the golden files' form.
#pragma once
#include <nlohmann/json.hpp>

#include "meshard/sharding/tile_assignment.h"

namespace meshard::conformance {

/// `{sharding_type, tile_assignment, group_assignment, replication_groups}`. Only partial shardings
/// have groups.
nlohmann::json tile_facts(const Sharding& sharding);

/// `{tile_assignment, tile_assignment_shape}`.
nlohmann::json tile_array_facts(const Sharding& sharding);

/// `{group_assignment, replication_groups}`.
nlohmann::json group_facts(const Sharding& sharding);

/// The fields of the OpSharding that torch_xla prints: `{type, tile_assignment_dimensions,
/// tile_assignment_devices, replicate_on_last_tile_dim}`.
nlohmann::json op_sharding_fields(const TileAssignment& tiles);

/// The tile assignment as a list of device ids, replicas in mesh order.
TileAssignment listed_tiles(const Sharding& sharding);

}  // namespace meshard::conformance
