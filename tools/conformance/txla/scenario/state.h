// The observable state of a scenario's tensor, in the golden files' form.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "meshard/graph/tensor.h"
#include "meshard/runtime/counters.h"

namespace meshard::conformance {

/// `{where, spec, type, data_sharding, num_shards, shape}`: where the bytes are (`host`, `device`,
/// or `ir` for a value that is only recorded), the annotation as HLO text ("" without one) and its
/// canonical type, and the sharding of the bytes on devices.
nlohmann::json state_of(const Tensor& tensor);

/// `{device, shape, indices, replica_id, data}` of each shard by ascending device, with padding in
/// the data. If every device holds all elements, `indices` is "all" and the replica id is the
/// device's index.
nlohmann::json shards_of(const Tensor& tensor);

/// The counters above zero, under the reference's names.
nlohmann::json json_of(const RuntimeCounters& counters);

}  // namespace meshard::conformance
