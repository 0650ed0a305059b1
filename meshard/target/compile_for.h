// Compiles for absent hardware, in a process of its own.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/pjrt/compile_options.h"
#include "meshard/target/compiled.h"
#include "meshard/target/target.h"

namespace meshard {

/// A value: what to compile, and for what.
struct CompileRequest {
  /// StableHLO, as text or bytecode.
  std::string module;
  Target target;
  /// Partitions; the device ids that carry them, in order, if not the target's first ones.
  int num_partitions = 1;
  std::vector<int> device_ids = {};
  /// True: Shardy. False: the older partitioner, for modules that carry `mhlo.sharding`.
  bool use_shardy = true;
  /// Options of the compiler by XLA's DebugOptions names.
  std::map<std::string, pjrt::CompileOptions::Override> overrides = {};
};

struct CompileForOptions {
  /// The compiler is stopped after this.
  std::chrono::seconds time_limit = std::chrono::minutes(30);
  /// Told what is going on, from the calling thread: `loading libtpu 0.0.51`, `compiling, 12 s`.
  std::function<void(const std::string& step)> progress = {};
  /// Finished compiles are kept and found here. Empty: `compiled/` of the cache folder.
  std::string cache = {};
  bool use_cache = true;
  /// The plugin file. Empty: searched for.
  std::string plugin = {};
};

/// Compiles in a child process (the program `meshard-compile`), so that a compiler that crashes or
/// hangs takes nothing with it. Nothing of a failed compile is left behind.
/// @error what the compiler says; deadline exceeded; internal if the child crashed, with the last
/// lines that it printed; not found if there is no plugin for the target, with how to get one;
/// resource exhausted if the program does not fit into the device's memory.
Result<Compiled> compile_for(const CompileRequest& request, const CompileForOptions& options = {});

}  // namespace meshard
