// The process's runtime: a client for each platform that is used, made at first use.
#pragma once
#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/base/source_location.h"
#include "meshard/mesh/mesh.h"
#include "meshard/pjrt/client.h"

namespace meshard {

/// A platform beside the default one: which plugin the meshes of a device type run on.
struct PlatformOptions {
  /// The device type (Mesh::with_device_type) that means it: letters, digits and _.
  std::string device_type = {};
  /// Path of its plugin; empty: MESHARD_PLUGIN_<TYPE>, with the device type in capitals, else the
  /// first one found whose file name says this type.
  std::string plugin = {};
  /// Virtual devices, if it is a CPU plugin; 0: as many as RuntimeOptions::cpu_devices says.
  int cpu_devices = 0;
  /// Passed to the plugin as they are, after a check of names and types.
  std::vector<pjrt::NamedValue> client_options = {};
};

struct RuntimeOptions {
  /// Path of the plugin; empty: MESHARD_PLUGIN, else the first one found for `platform`.
  std::string plugin = {};
  /// `cpu`, `cuda`, `tpu`; empty: MESHARD_PLATFORM, else cpu.
  std::string platform = {};
  /// Virtual devices of the CPU platform; 0: MESHARD_CPU_DEVICES, else 8.
  int cpu_devices = 0;
  /// Passed to the plugin as they are, after a check of names and types.
  std::vector<pjrt::NamedValue> client_options = {};
  /// Further platforms. A device type that is neither listed here nor has a variable
  /// MESHARD_PLUGIN_<TYPE> is looked for among the installed plugins when it is first used.
  std::vector<PlatformOptions> platforms = {};
};

/// Says how the runtime is to be made. Call it before the first tensor is computed or placed.
/// @error failed precondition if the runtime runs already; invalid argument for a further platform
/// without a valid name, with that of the default one, or listed twice.
Result<void> configure_runtime(RuntimeOptions options);

/// The client of the default platform: of all values that nobody placed and of meshes without a
/// device type. Made at the first call.
/// @error not found if there is no plugin, saying where it was looked for; what the plugin answers;
/// failed precondition in a process that was forked after the runtime began.
const pjrt::Client& runtime_client(SourceLocation where = SourceLocation::current());

/// The client of a device type; empty: of the default platform. Made at its first call.
/// @error the same, naming the device type
const pjrt::Client& runtime_client(std::string_view device_type,
                                   SourceLocation where = SourceLocation::current());

/// The client whose devices the mesh has: that of mesh.device_type(). Made at its first use.
/// @error the same, naming the device type
const pjrt::Client& runtime_client(const Mesh& mesh,
                                   SourceLocation where = SourceLocation::current());

/// Goes on with new clients of the same plugins, one for each platform that runs, made at their
/// next use: after a launch that failed inside a plugin has left its client unable to run others
/// (pjrt::Client::is_wedged()), or whenever devices are to be given back.
///
/// Values on the host are as before. Values on the devices of a client that was replaced are read
/// from there as long as its memory can be read, and are sent to the new one's devices by way of
/// the host when a program uses them; those that a failed launch should have computed are recorded
/// again, or give its error. Programs are compiled again at their next call. The old clients stay
/// until the process ends: references to them are out, and to destroy a wedged one is to wait.
void restart_runtime();

namespace internal {
/// Counts restarts.
extern std::atomic<std::uint32_t> runtime_generation;
extern std::atomic<bool> is_forked_child;
[[noreturn]] void fail_in_forked_child(SourceLocation where);
/// Finds out which device types mean the default platform (mesh/device_type.h). Starts its client
/// only if nothing but its plugin can tell. Before values are put together, whose meshes may have
/// types or not.
void know_default_platform(SourceLocation where);
}  // namespace internal

/// A child process that was forked after the runtime began has none of the plugin's threads: what
/// it launched or read would never end.
/// @error failed precondition in such a process
inline void check_not_forked(SourceLocation where) {
  if (internal::is_forked_child.load(std::memory_order_relaxed)) [[unlikely]]
    internal::fail_in_forked_child(where);
}

/// The clients that were made already, the default platform's first.
std::vector<const pjrt::Client*> started_clients();

/// Makes the runtime compute recorded tensors. <meshard/meshard.h> calls it; returns true.
bool install_runtime();

}  // namespace meshard
