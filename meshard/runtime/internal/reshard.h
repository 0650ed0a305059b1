// Resharding by a program on the devices of the value.
#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// The value with the sharding `target`, which is over the same devices.
/// @pre `value` is stored with a sharding, on devices of a current client
/// @error errors of the compiler and the plugin
Tensor reshard(Runtime& runtime, const Value& value, const Sharding& target, SourceLocation where);

}  // namespace meshard
