// Where values go: chooses between host to device, device to device, and a copy that exists.
#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/runtime/transfer.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// `value` with this sharding: itself, or a new value. Host data is sent (host_to_device.h); data
/// on devices is moved (device_to_device.h), from its nearest copy.
/// @pre `value` is stored
/// @error the errors of sending and moving
Tensor place_value(Runtime& runtime, const Value& value, const Sharding& sharding,
                   SourceLocation where);

/// The same, in two parts (start_transfer()).
StartedTransfer start_placing(Runtime& runtime, const Value& value, const Sharding& sharding,
                              SourceLocation where);

/// `value` with this sharding: itself, an existing copy, or a new copy, which is remembered.
/// @pre `value` is stored
/// @error the errors of place_value
Tensor copy_with(Runtime& runtime, const Value& value, const Sharding& sharding,
                 SourceLocation where);

}  // namespace meshard
