// transfer() with a sharding spec, as used by loaders.
#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding_spec.h"

namespace meshard {

/// Copies `x` to the devices of the spec's mesh, sharded by the spec. See runtime/transfer.h.
/// @error as transfer, and as ShardingSpec::sharding.
Tensor transfer(In x, const ShardingSpec& spec);

}  // namespace meshard
