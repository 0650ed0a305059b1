// The shards of a tensor on devices, in the golden files' form.
#pragma once
#include <nlohmann/json.hpp>

#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding.h"

namespace meshard::conformance {

/// The array with the fields `data`, `global_shape` and `dtype`, placed on the devices.
Tensor placed(const nlohmann::json& input, const Sharding& sharding);

/// shards_of with the padding of each, `pad_high`; `data` only for tensors of up to 64 elements.
nlohmann::json shards_on_devices(const Tensor& tensor);

}  // namespace meshard::conformance
