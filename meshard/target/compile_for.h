// Compiles a program for absent hardware, in a child process.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/field_notes.h"
#include "meshard/base/fields.h"
#include "meshard/base/result.h"
#include "meshard/pjrt/compile_options.h"
#include "meshard/pjrt/executable.h"
#include "meshard/pjrt/named_value.h"
#include "meshard/target/target.h"

namespace meshard {

/// Value type: one compiled program and the compiler's information about it.
struct Compiled {
  /// Bytes for HloModule::from_bytes.
  std::string optimized_program;
  /// None if the plugin does not report memory statistics.
  std::optional<pjrt::CompiledMemoryStats> memory;
  std::vector<pjrt::NamedValue> cost_analysis;
  /// Serialized OpShardings if the plugin has the extension; else empty.
  std::vector<std::string> parameter_shardings, output_shardings;
  /// The module after sharding propagation and before partitioning, as bytes of an HloProto; empty
  /// if the compiler did not dump it.
  std::string propagated_program;
  /// The buffer assignment, as bytes of an HloProto; empty if the compiler did not dump it.
  std::string buffer_assignment;
  /// The compiler's output.
  std::string log;
  std::string platform_version;
  /// Targets of custom calls for which the compiler's process has no handler: the program cannot
  /// run there.
  std::vector<std::string> missing_handlers;
  /// The plugin's compile time.
  double compile_seconds = 0;
  /// True if the result was read from the cache.
  bool from_cache = false;

  MESHARD_FIELDS(optimized_program, memory, cost_analysis, parameter_shardings, output_shardings,
                 propagated_program, buffer_assignment, log, platform_version, missing_handlers,
                 compile_seconds, from_cache)
  static constexpr FieldNotes kFieldNotes{.local = "from_cache"};
  /// All fields except from_cache, as bytes (base/packed_fields.h).
  std::string serialize() const;
  /// Reads what serialize() wrote.
  /// @error data loss if the bytes are damaged, truncated, or of another version of meshard
  static Result<Compiled> deserialize(std::string_view bytes);
};

class CompileWorkers;

/// Value type: what to compile, and for which target.
struct CompileRequest {
  /// The StableHLO module, as text or bytecode.
  std::string module = {};
  Target target = {};
  /// How it is compiled. Without a device assignment: for the target's lowest devices.
  pjrt::CompileOptions options = {};
  /// Passes the options that JAX passes by default and that change the result.
  bool as_jax = false;

  MESHARD_FIELDS(module, target, options, as_jax)
  friend bool operator==(const CompileRequest&, const CompileRequest&) = default;
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
