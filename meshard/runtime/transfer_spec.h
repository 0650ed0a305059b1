// transfer() by what a loader says.
#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding_spec.h"

namespace meshard {

/// The value of `x` on the devices of the spec's mesh, as the spec says of a tensor of its
/// dimensions. See runtime/transfer.h.
/// @error as transfer, and as ShardingSpec::sharding.
Tensor transfer(In x, const ShardingSpec& spec);

}  // namespace meshard
