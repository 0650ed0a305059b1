// The result of a compile for absent hardware, serializable so that it outlives its process.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/field_notes.h"
#include "meshard/base/fields.h"
#include "meshard/base/result.h"
#include "meshard/pjrt/executable.h"
#include "meshard/pjrt/named_value.h"

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

}  // namespace meshard
