// What kind of sharding it is, in torch_xla's words and numbers.
#pragma once
#include <cstdint>
#include <string_view>

#include "meshard/sharding/tile_assignment.h"

namespace meshard {

/// torch_xla's types of shardings, with its numbers. (The engine numbers its own otherwise.)
enum class ShardingType {
  kReplicated = 0,
  kMaximal = 1,  ///< all on one device
  kTuple = 2,    ///< a list of shardings
  kTiled = 3,    ///< each device holds a tile of its own
  kManual = 4,
  kPartial = 5,  ///< partially replicated: several devices hold each tile. *Not* unreduced
  kUnknown = 6,
};

/// `REPLICATED`, `MAXIMAL`, ...
std::string_view to_string(ShardingType type);

/// The type that a partition spec has for a mesh of `num_devices` whose axes it names all: maximal
/// on one device, else replicated, partial or tiled as none, some or all of its dimensions are
/// split. An axis of size 1 splits.
ShardingType sharding_type(const PartitionSpec& spec, std::int64_t num_devices);

/// The type that torch_xla 2.9 chooses for a mesh and a spec: partial if the spec leaves axes over
/// and its dimensions are too few to stand for them, else as above; a scalar is replicated, an
/// unreduced value unknown. It depends on how the spec is written; canonical_type does not.
ShardingType sharding_type(const Sharding& sharding);

/// The type of what an assignment says: partial for any subgroup of replicas, tiled for each device
/// a tile of its own; unknown for unreduced values, which torch_xla has no number for.
ShardingType sharding_type(const TileAssignment& tiles);

/// The type that is left when only the placement counts: that of tile_assignment(sharding).
ShardingType canonical_type(const Sharding& sharding);

}  // namespace meshard
