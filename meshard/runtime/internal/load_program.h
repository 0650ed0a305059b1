// Loads programs on devices: by compiling them, or from one that was compiled for other devices.
#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/lowering/lower.h"
#include "meshard/pjrt/client.h"
#include "meshard/runtime/disk_cache.h"
#include "meshard/runtime/loaded_program.h"
#include "meshard/runtime/platforms.h"

namespace meshard {

/// The options that a program is compiled with for these devices.
pjrt::CompileOptions compile_options_for(const pjrt::Client& client, const LoweredModule& lowered,
                                         const std::vector<int>& devices);

/// Loads `lowered` from `disk`, or compiles it, for these devices (device_assignment.h), and keeps
/// it on disk if compiling took long. `where` is the user's source line, for traces.
/// @error the compiler's errors; the errors of read_shardings
Result<std::shared_ptr<const LoadedProgram>> compile_and_load(
    const Platforms& platforms, const pjrt::Client& client, const DiskCache& disk,
    LoweredModule lowered, const std::vector<int>& devices, SourceLocation where);

/// An executable, the pjrt::interface_bytes() of its program, and the bytes it was loaded from.
struct ExecutableFromDisk {
  pjrt::LoadedExecutable executable;
  std::string interface, bytes;
};

/// The executable of `key` from `disk`, loaded with these options. None if it is not there, or
/// cannot be loaded; disk_misses() has the reason. `name` is the program's.
std::optional<ExecutableFromDisk> load_executable(const pjrt::Client& client, const DiskCache& disk,
                                                  const DiskCache::Key& key,
                                                  const pjrt::CompileOptions& options,
                                                  std::string_view name);

/// Keeps a compiled executable on disk, if compiling it since `begin` took long enough. `interface`
/// is what load_executable() then returns.
void keep_executable(const DiskCache& disk, const DiskCache::Key& key,
                     const pjrt::LoadedExecutable& executable, std::string interface,
                     std::chrono::steady_clock::time_point begin);

/// Loads the executable of `known` for other devices, without compiling it. Its shardings are those
/// of `known`, over the meshes of `lowered`.
/// @pre `known` was compiled from the same text, in this process (not is_from_bytes());
/// lowered.mesh
/// @error unimplemented if the plugin cannot serialize programs; the plugin's other errors
Result<std::shared_ptr<const LoadedProgram>> load_for_other_devices(
    const Platforms& platforms, const pjrt::Client& client, const LoadedProgram& known,
    LoweredModule lowered, const std::vector<int>& devices, SourceLocation where);

}  // namespace meshard
