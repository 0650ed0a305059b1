// A value to other devices than those it lies on.
#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// The value of `x` on the devices of `sharding`'s mesh, computed first if it is only recorded. `x`
/// itself stays where it is. This is the way from one set of devices to another: one program runs
/// on one set.
///
/// Shards go from device to device where the plugin can do that; a value with other tiles is
/// resharded on its own devices first if there are as many of them. Else it goes through the host,
/// as it does from one platform to another. runtime_counters() tells which.
/// @error failed precondition inside a trace or a function that is being differentiated, which runs
/// on one set of devices; the sharding describes more dimensions than x has.
Tensor transfer(In x, const Sharding& sharding);
Tensor transfer(In x, const Mesh& mesh, const PartitionSpec& spec);

}  // namespace meshard
