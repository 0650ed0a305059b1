// What a compiler gave for absent hardware, as bytes that outlive its process.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/pjrt/executable.h"
#include "meshard/pjrt/named_value.h"

namespace meshard {

/// A value: one compiled program and what its compiler told about it.
struct Compiled {
  /// Bytes for pjrt::HloModule::from_bytes.
  std::string optimized_program;
  /// None if the plugin does not count.
  std::optional<pjrt::CompiledMemoryStats> memory;
  std::vector<pjrt::NamedValue> cost_analysis;
  /// Serialised OpShardings where the plugin has the extension; else empty.
  std::vector<std::string> parameter_shardings, output_shardings;
  /// The module after sharding propagation and before partitioning, as bytes of an HloProto; empty
  /// if the compiler wrote none.
  std::string propagated_program;
  /// Which buffers there are, as bytes of an HloProto with its buffer assignment; empty as above.
  std::string buffer_assignment;
  /// What the compiler printed.
  std::string log;
  std::string platform_version;
  /// The plugin's own time.
  double compile_seconds = 0;
  /// It was in the cache.
  bool from_cache = false;

  /// Everything but from_cache, as bytes (protobuf's wire format, fields of our own).
  std::string serialize() const;
  /// Reads what serialize() wrote.
  /// @error data loss if the bytes are damaged or cut off
  static Result<Compiled> deserialize(std::string_view bytes);
};

}  // namespace meshard
