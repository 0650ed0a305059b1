// The process's runtime: one client for each platform, created at first use.
#pragma once
#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/environment.h"
#include "meshard/base/result.h"
#include "meshard/base/source_location.h"
#include "meshard/mesh/mesh.h"
#include "meshard/pjrt/named_value.h"

namespace meshard {

namespace pjrt {
class Client;
}

/// A further platform, in addition to the default one: the plugin for the meshes of a device type.
struct PlatformOptions {
  /// The device type (Mesh::with_device_type) that selects this platform: letters, digits and _.
  std::string device_type = {};
  /// Path of its plugin. Empty (default): MESHARD_PLUGIN_<TYPE>, with the device type in capitals,
  /// otherwise the first plugin found whose file name has this type.
  std::string plugin = {};
  /// Number of virtual devices, for a CPU plugin. 0 (default): the value of
  /// RuntimeOptions::cpu_devices.
  int cpu_devices = 0;
  /// Passed to the plugin as they are, after a check of names and types.
  std::vector<pjrt::NamedValue> client_options = {};
};

/// Options of configure_runtime().
struct RuntimeOptions {
  /// Path of the plugin. Empty (default): MESHARD_PLUGIN, otherwise MESHARD_PLUGIN_<PLATFORM>,
  /// otherwise the first plugin found for `platform`.
  std::string plugin = {};
  /// Name of the default platform: `cpu`, `cuda`, `tpu`. Empty (default): MESHARD_PLATFORM,
  /// otherwise the platform of the specified plugin, or `cpu` if none is specified.
  std::string platform = {};
  /// Number of virtual devices of the CPU platform. 0 (default): MESHARD_CPU_DEVICES, otherwise 8.
  /// In a run of several processes, ProcessesOptions::local_devices applies instead.
  int cpu_devices = 0;
  /// Passed to the plugin as they are, after a check of names and types.
  std::vector<pjrt::NamedValue> client_options = {};
  /// What is written to the standard error stream: advice, long waits, lines of the plugins.
  /// Empty (default): MESHARD_LOG, otherwise errors only.
  std::optional<LogLevel> log = std::nullopt;
  /// Checks that the processes of a mesh place equal host data on it (from_host, mark_sharding), by
  /// comparing hashes; otherwise the devices would hold parts of different arrays. Default: the
  /// value of MESHARD_CHECK_HOST_DATA (0 or 1), else false, because each placement then takes a
  /// message to process 0 and back.
  std::optional<bool> check_host_data = std::nullopt;
  /// Further platforms. A device type that is not listed here and has no variable
  /// MESHARD_PLUGIN_<TYPE> is searched for among the installed plugins at its first use.
  std::vector<PlatformOptions> platforms = {};
};

/// Configures the runtime. Call it before the first tensor is computed or placed.
/// @error failed precondition if the runtime has already started; invalid argument for a further
/// platform without a valid name, with the name of the default one, or listed twice.
Result<void> configure_runtime(RuntimeOptions options);

/// The client of the default platform. It is used for unplaced values and for meshes without a
/// device type. Created at the first call.
/// @error not found if there is no plugin, with the places that were searched; the plugin's errors;
/// failed precondition in a process that was forked after the runtime started.
const pjrt::Client& runtime_client(SourceLocation where = SourceLocation::current());

/// The client of a device type; empty: the default platform. Created at its first use.
/// @error the same, naming the device type
const pjrt::Client& runtime_client(std::string_view device_type,
                                   SourceLocation where = SourceLocation::current());

/// The client of the mesh's devices: that of mesh.device_type(). Created at its first use.
/// @error the same, naming the device type
const pjrt::Client& runtime_client(const Mesh& mesh,
                                   SourceLocation where = SourceLocation::current());

/// Replaces the clients of all running platforms. The new clients use the same plugins and are
/// created at their next use. Use it after a launch that failed inside a plugin has made its client
/// unable to run others (pjrt::Client::is_wedged()), or to release the devices.
///
/// Values on the host do not change. Values on the devices of a replaced client are read from there
/// as long as its memory is readable; when a program uses them, they are sent through the host to
/// the new client's devices. Values that a failed launch should have computed are recorded again,
/// or return its error. Programs are compiled again at their next call. The old clients remain
/// until the process ends, because references to them exist, and destroying a wedged client would
/// wait for its launches.
void restart_runtime();

namespace internal {
extern std::atomic<bool> is_forked_child;
[[noreturn]] void fail_in_forked_child(SourceLocation where);
}  // namespace internal

/// Checks that this is not a child process that was forked after the runtime started. Such a
/// process has none of the plugin's threads, so its launches and reads would never complete.
/// @error failed precondition in such a process
inline void check_not_forked(SourceLocation where) {
  if (internal::is_forked_child.load(std::memory_order_relaxed)) [[unlikely]]
    internal::fail_in_forked_child(where);
}

/// The clients that have been created, the default platform's first.
std::vector<const pjrt::Client*> started_clients();

/// Installs the runtime as the evaluator of recorded tensors. <meshard/meshard.h> calls it; returns
/// true.
bool install_runtime();

}  // namespace meshard
