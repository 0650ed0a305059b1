// How much memory of the devices is in use.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/print.h"
#include "meshard/base/source_location.h"
#include "meshard/mesh/mesh.h"

namespace meshard {

/// A value: the memory of one device, in bytes.
struct MemoryStats {
  std::int64_t device = 0;
  /// The live buffers that this process has on the device, by their types, and the most so far.
  /// Known on every platform. Temporary memory of running programs is not included, nor what the
  /// allocator adds.
  std::int64_t live_bytes = 0;
  std::int64_t peak_live_bytes = 0;
  /// What the plugin's allocator reports; empty if it reports nothing. CPU devices do not.
  std::optional<std::int64_t> bytes_in_use = std::nullopt;
  std::optional<std::int64_t> peak_bytes_in_use = std::nullopt;
  /// The memory that the plugin may use.
  std::optional<std::int64_t> bytes_limit = std::nullopt;
  std::optional<std::int64_t> largest_free_block = std::nullopt;

  /// `device 0: 4096 bytes live (at most 8192)`, followed by what the plugin reports.
  std::string to_string() const;
  friend bool operator==(const MemoryStats&, const MemoryStats&) = default;
};

/// The memory of a device now. Launches in flight may still hold or release some: call sync()
/// first. JAX calls this device.memory_stats(), torch_xla xm.get_memory_info().
/// @param device_type the platform; empty: the default one
/// @code
/// Tensor x = mark_sharding(ones({8, 1024}), Mesh({{"x", 8}}), P("x"));
/// sync(x);
/// MemoryStats first = memory_stats(0);  // first.live_bytes is at least 4096
/// @endcode
/// @error invalid argument if there is no such device in this process; errors of the plugin
MemoryStats memory_stats(std::int64_t device, std::string_view device_type = {},
                         SourceLocation where = SourceLocation::current());

/// The memory of the devices of a mesh that are in this process, in mesh order. @error as above
std::vector<MemoryStats> memory_stats(const Mesh& mesh,
                                      SourceLocation where = SourceLocation::current());

}  // namespace meshard
