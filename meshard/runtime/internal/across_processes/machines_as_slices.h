// The machines of a run as the slices of a topology.
#pragma once
#include <vector>

#include "meshard/processes/processes.h"
#include "meshard/topology/topology.h"

namespace meshard::internal {

/// If the processes are on several machines, and the devices have neither coordinates nor slices,
/// each machine is a slice. They are numbered in the order of their first processes.
Topology machines_as_slices(Topology topology, const std::vector<ProcessInfo>& members);

}  // namespace meshard::internal
