// Where programs are compiled: for languages whose waits a signal can end.
#pragma once
#include <atomic>
#include <functional>
#include <string>

namespace meshard::internal {

/// Calls `work`, which compiles the program of this name and puts it into the cache, once; on this
/// thread or on another one. Returns when `work` has returned, and rethrows its error. May throw
/// another error earlier; `work` then continues, so it must own everything it uses.
using CompileRunner = void (*)(const std::string& name, std::function<void()> work);

/// The runner of the compiles of all threads. Default: null, the thread that needs the program.
inline constinit std::atomic<CompileRunner> compile_runner{nullptr};

}  // namespace meshard::internal
