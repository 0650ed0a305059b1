// Values that move to devices of other processes.
#pragma once
#include <vector>

#include "meshard/runtime/device_array.h"
#include "meshard/runtime/internal/across_processes.h"

namespace meshard {

/// Begins to move a value to the devices of `target`'s mesh. Each process that has some receives
/// the tiles of these, each tile once, from the processes that have them. Waits for nothing: the
/// buffers become ready when their tiles have arrived, or fail if they do not. Called by all
/// processes of both meshes, at the same place in their order of transfers.
/// @pre neither sharding has unreduced axes; the value has elements
/// @return the buffers of this process, in the order of the target's mesh
/// @error an earlier failure of the communication; the plugin's errors
Result<std::vector<pjrt::Buffer>> receive_tiles(AcrossProcesses& across, const DeviceArray& source,
                                                const Sharding& target, SourceLocation where);

}  // namespace meshard
