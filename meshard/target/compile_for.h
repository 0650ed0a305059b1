// Compiles a program for absent hardware, in a child process.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "meshard/base/result.h"
#include "meshard/pjrt/compile_options.h"
#include "meshard/target/compiled.h"
#include "meshard/target/target.h"

namespace meshard {

class CompileWorkers;

/// Value type: what to compile, and for which target.
struct CompileRequest {
  /// The StableHLO module, as text or bytecode.
  std::string module;
  Target target;
  /// How it is compiled. Without a device assignment: for the target's lowest devices.
  pjrt::CompileOptions options = {};
  /// Passes the options that JAX passes by default and that change the result.
  bool as_jax = false;
};

struct CompileForOptions {
  /// Stops the compiler after this time. Default: 30 minutes.
  std::chrono::seconds time_limit = std::chrono::minutes(30);
  /// Progress callback, called from the calling thread: `loading libtpu 0.0.51`, `compiling, 12 s`.
  std::function<void(const std::string& step)> progress = {};
  /// The folder that caches compiled programs. Empty: `compiled/` in the cache folder.
  std::string cache = {};
  bool use_cache = true;
  /// The plugin file. Empty: searched for.
  std::string plugin = {};
  /// Called about ten times per second. If it returns true, the compiler is stopped, and the
  /// compile ends with an error of code cancelled. Default: none.
  std::function<bool()> is_cancelled = {};
  /// Processes that are used for several compiles (compile_workers.h). Default: each compile has a
  /// process of its own.
  std::shared_ptr<CompileWorkers> workers = nullptr;
};

/// Compiles in a child process, the program `meshard-compile`. A compiler that crashes or hangs
/// therefore does not affect this process. Without `workers`, a compile leaves no processes or
/// files behind.
/// @error the compiler's error; deadline exceeded; cancelled; internal if the child crashed, with
/// its last lines of output; not found if there is no plugin for the target, with how to get one;
/// resource exhausted if the program does not fit into the device's memory.
Result<Compiled> compile_for(const CompileRequest& request, const CompileForOptions& options = {});

}  // namespace meshard
