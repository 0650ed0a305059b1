// The process's runtime: one client of one plugin, made at first use.
#pragma once
#include <atomic>
#include <string>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/base/source_location.h"
#include "meshard/pjrt/client.h"

namespace meshard {

struct RuntimeOptions {
  /// Path of the plugin; empty: MESHARD_PLUGIN, else the first one found for `platform`.
  std::string plugin = {};
  /// `cpu`, `cuda`, `tpu`; empty: MESHARD_PLATFORM, else cpu.
  std::string platform = {};
  /// Virtual devices of the CPU platform; 0: MESHARD_CPU_DEVICES, else 8.
  int cpu_devices = 0;
  /// Passed to the plugin as they are, after a check of names and types.
  std::vector<pjrt::NamedValue> client_options = {};
};

/// Says how the runtime is to be made. Call it before the first tensor is computed or placed.
/// @error failed precondition if the runtime runs already.
Result<void> configure_runtime(RuntimeOptions options);

/// The client behind all tensors of this process; made at the first call.
/// @error not found if there is no plugin, saying where it was looked for; what the plugin answers;
/// failed precondition in a process that was forked after the runtime began.
const pjrt::Client& runtime_client(SourceLocation where = SourceLocation::current());

/// Goes on with a new client of the same plugin, made at the next use, after a launch that failed
/// inside the plugin has left the client unable to run others (pjrt::Client::is_wedged()), or
/// whenever devices are to be given back.
///
/// Values on the host are as before. Values on the devices of the client that was replaced are read
/// from there as long as its memory can be read, and are sent to the new one's devices by way of
/// the host when a program uses them; those that a failed launch should have computed are recorded
/// again, or give its error. Programs are compiled again at their next call. The old client stays
/// until the process ends: references to it are out, and to destroy a wedged one is to wait.
void restart_runtime();

namespace internal {
/// Counts restarts.
extern std::atomic<std::uint32_t> runtime_generation;
extern std::atomic<bool> is_forked_child;
[[noreturn]] void fail_in_forked_child(SourceLocation where);
}  // namespace internal

/// A child process that was forked after the runtime began has none of the plugin's threads: what
/// it launched or read would never end.
/// @error failed precondition in such a process
inline void check_not_forked(SourceLocation where) {
  if (internal::is_forked_child.load(std::memory_order_relaxed)) [[unlikely]]
    internal::fail_in_forked_child(where);
}

/// The same if it was made already; nullptr otherwise.
const pjrt::Client* started_client();

/// Makes the runtime compute recorded tensors. <meshard/meshard.h> calls it; returns true.
bool install_runtime();

}  // namespace meshard
