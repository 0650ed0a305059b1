// Transfers a value to other devices.
#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// Copies `x` to the devices of `sharding`'s mesh, with that sharding. `x` is computed first if it
/// is only recorded, and itself stays where it is. Use this to move values between sets of devices,
/// because one program runs on one set.
///
/// Shards are copied directly between devices if the plugin supports it. A value with other tiles
/// is first resharded on its own devices, if their number is the same. Otherwise, and between
/// platforms, the data goes through the host. runtime_counters() shows which path was used.
/// @error failed precondition inside a trace or a function that is being differentiated, which runs
/// on one set of devices; the sharding has more dimensions than x.
Tensor transfer(In x, const Sharding& sharding);
Tensor transfer(In x, const Mesh& mesh, const PartitionSpec& spec);

}  // namespace meshard
