// Loads programs on devices: by compiling them, or from one that was compiled for other devices.
#pragma once
#include <memory>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/lowering/lower.h"
#include "meshard/pjrt/client.h"
#include "meshard/runtime/disk_cache.h"
#include "meshard/runtime/loaded_program.h"
#include "meshard/runtime/platforms.h"

namespace meshard {

/// Loads `lowered` from `disk`, or compiles it, for these devices (device_assignment.h), and keeps
/// it on disk if compiling took long. `where` is the user's source line, for traces.
/// @error the compiler's errors; the errors of read_shardings
Result<std::shared_ptr<const LoadedProgram>> compile_and_load(
    const Platforms& platforms, const pjrt::Client& client, const DiskCache& disk,
    LoweredModule lowered, const std::vector<int>& devices, SourceLocation where);

/// Loads the executable of `known` for other devices, without compiling it. Its shardings are those
/// of `known`, over the meshes of `lowered`.
/// @pre `known` was compiled from the same text, in this process (not is_from_bytes());
/// lowered.mesh
/// @error unimplemented if the plugin cannot serialize programs; the plugin's other errors
Result<std::shared_ptr<const LoadedProgram>> load_for_other_devices(
    const Platforms& platforms, const pjrt::Client& client, const LoadedProgram& known,
    LoweredModule lowered, const std::vector<int>& devices, SourceLocation where);

}  // namespace meshard
