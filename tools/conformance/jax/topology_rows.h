// Reads and writes topologies as recorded from JAX.
#pragma once
#include <nlohmann/json.hpp>

#include "meshard/topology/topology.h"

namespace meshard::conformance {

/// The topology of `{device_kind, devices: [[id, x, y, z, core, slice or null, process], ...]}`.
Topology topology_of_rows(const nlohmann::json& fields);

/// The inverse: the rows of a topology.
nlohmann::json rows_of(const Topology& topology);

}  // namespace meshard::conformance
