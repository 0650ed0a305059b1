// What a tensor of a scenario looks like from outside, in the words of the golden files.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "meshard/graph/tensor.h"
#include "meshard/runtime/counters.h"

namespace meshard::conformance {

/// `{where, spec, type, data_sharding, num_shards, shape}`: where the bytes are (`host`, `device`,
/// or `ir` for a value that is only recorded), the annotation as HLO text ("" without one) and its
/// canonical type, and how the bytes lie on devices.
nlohmann::json state_of(const Tensor& tensor);

/// `{device, shape, indices, replica_id, data}` of each shard by ascending device; the data with
/// padding. `indices` is "all" and the replica the device's own number if every device holds it
/// all.
nlohmann::json shards_of(const Tensor& tensor);

/// What the counters say by the reference's names, those above zero.
nlohmann::json json_of(const RuntimeCounters& counters);

}  // namespace meshard::conformance
