// Compiles a program for absent hardware, in a child process; what the messages of compilers mean.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/error.h"
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
  /// If the request keeps it: the module before any optimization, as bytes of an HloProto.
  std::string source_program;
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
                 propagated_program, buffer_assignment, source_program, log, platform_version,
                 missing_handlers, compile_seconds, from_cache)
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
  /// Sets Compiled::source_program, also, and then alone, if the compiler fails after it has read
  /// the module. Default: false.
  bool keep_source = false;

  MESHARD_FIELDS(module, target, options, as_jax, keep_source)
  friend bool operator==(const CompileRequest&, const CompileRequest&) = default;
};

/// Options of compile_for().
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
/// resource exhausted if the program does not fit into the device's memory; unimplemented if it
/// calls functions of this process, for another target than CPUs.
Result<Compiled> compile_for(const CompileRequest& request, const CompileForOptions& options = {});

/// Value type: main-memory bytes that a program needs and that the device has.
struct MemoryShortage {
  std::int64_t needed = 0;
  std::int64_t available = 0;
  /// True if `needed` counts only temporaries, excluding arguments and results.
  bool temporaries_only = false;
  friend bool operator==(const MemoryShortage&, const MemoryShortage&) = default;
};

/// True if the compiler's message reports insufficient memory.
bool says_out_of_memory(std::string_view message);

/// The numbers in libtpu's out-of-memory messages; none if there are none. The messages are `the
/// total memory required for HLO temporaries (48.00G) exceeds available HBM (15.75G)` and `Used
/// 17.39G of 15.75G hbm`, with numbers rounded to two digits after the point (K, M, G: 2^10, 2^20,
/// 2^30).
std::optional<MemoryShortage> memory_shortage(std::string_view message);

/// The words before and after the target's name in an error.
struct CallErrorText {
  std::string_view before, after;
};
/// No handler is registered for the call.
inline constexpr CallErrorText kNoHandlerText{"No FFI handler registered for ", " on a platform"};
/// The call has an older interface, for which nothing can be registered.
inline constexpr CallErrorText kUntypedCallText{"untyped custom call to ", " for Host"};

/// The target that the error names, a part of its message; empty if it is another error.
std::string_view unhandled_call(const Error& error, const CallErrorText& text);

}  // namespace meshard
