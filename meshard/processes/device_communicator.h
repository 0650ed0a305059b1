// Collectives between the devices of several processes, each of which has some.
#pragma once
#include <memory>
#include <vector>

#include "meshard/processes/communicator.h"

namespace meshard {

/// Communicators of the devices of this process, in the order of their numbers. Devices are
/// numbered process by process: process p has the counts[p] numbers after those of the processes
/// before it. The rank of a communicator is the number of its device, its size the number of all
/// devices.
///
/// Each communicator is used by one thread at a time, and those of several devices by several
/// threads at once: the members of a group that are in one process wait for one another, combine
/// or copy in shared memory, and one of them exchanges the rest with other processes. Groups have
/// nothing to do with one another, so disjoint ones may meet in any order.
///
/// Elements are combined first within each process, then in the order of the processes in the
/// group; 16-bit and 8-bit floats in f32, rounded once. All members receive the same bits.
///
/// While a device of this process communicates, nothing else may use `processes`.
/// @pre one count for each process, at least 1 for this one; `processes` lives longer
std::vector<std::unique_ptr<Communicator>> make_device_communicators(ProcessCommunicator& processes,
                                                                     std::vector<int> counts);

}  // namespace meshard
