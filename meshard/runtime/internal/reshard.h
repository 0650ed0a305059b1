// Programs of the runtime's own, which rearrange a value on the devices that it is on.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "meshard/graph/tensor.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// Compiles what `record` returns for a parameter of the value's type and sharding, and launches it
/// with the value, which neither moves nor is placed.
/// @pre `value` is stored on devices of a current client; a value without a sharding is on the
/// default platform's first device
/// @error errors of `record`, the compiler and the plugin
std::vector<Tensor> run_in_place(Runtime& runtime, std::string name, const Value& value,
                                 SourceLocation where,
                                 const std::function<std::vector<Tensor>(const Tensor&)>& record);

/// The value with the sharding `target`, which is over the same devices.
/// @pre `value` is stored with a sharding, on devices of a current client
/// @error errors of the compiler and the plugin
Tensor reshard(Runtime& runtime, const Value& value, const Sharding& target, SourceLocation where);

}  // namespace meshard
