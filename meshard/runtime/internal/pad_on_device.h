// Cuts a value on one device into padded tiles there.
#pragma once
#include <vector>

#include "meshard/graph/tensor.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// The tiles of `target`, by tile_number(), each padded with zeros to the shard shape. They are
/// made by one program on the value's device.
/// @pre `value` is stored on the default platform's first device, without a sharding
/// @error errors of the compiler and the plugin
std::vector<Tensor> tiles_on_device(Runtime& runtime, const Value& value, const Sharding& target,
                                    SourceLocation where);

}  // namespace meshard
