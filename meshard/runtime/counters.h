// Counters of the runtime's work, for tests, for explain and for users.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/print.h"
#include "meshard/base/source_location.h"
#include "meshard/mesh/mesh.h"

namespace meshard {

/// A value: totals since the process started, or since reset_runtime_counters().
struct RuntimeCounters {
  /// Buffers created on devices from host data, and their bytes.
  std::uint64_t buffers_sent = 0;
  std::uint64_t bytes_sent = 0;
  /// Of bytes_sent, the bytes that the device uses in place, without a copy.
  std::uint64_t bytes_aliased = 0;
  /// Shards read back to the host, and their bytes.
  std::uint64_t buffers_read = 0;
  std::uint64_t bytes_read = 0;
  /// Buffers copied between devices, and their bytes.
  std::uint64_t buffers_moved = 0;
  std::uint64_t bytes_moved = 0;
  /// Programs compiled, loaded from a serialized program for other devices, and found in the cache
  /// in memory.
  std::uint64_t compiles = 0;
  std::uint64_t retargets = 0;
  std::uint64_t cache_hits = 0;
  /// Small programs without collectives that were loaded once more, as a program for each device,
  /// because they are called often (internal/program_by_device.h).
  std::uint64_t part_loads = 0;
  /// Programs loaded from the cache on disk, and looked for there without success (disk_misses).
  std::uint64_t disk_hits = 0;
  std::uint64_t disk_misses = 0;
  /// Launches of compiled programs, and recorded nodes that they computed.
  std::uint64_t launches = 0;
  std::uint64_t nodes_run = 0;

  friend RuntimeCounters operator-(RuntimeCounters a, const RuntimeCounters& b) {
    a.buffers_sent -= b.buffers_sent;
    a.bytes_sent -= b.bytes_sent;
    a.bytes_aliased -= b.bytes_aliased;
    a.buffers_read -= b.buffers_read;
    a.bytes_read -= b.bytes_read;
    a.buffers_moved -= b.buffers_moved;
    a.bytes_moved -= b.bytes_moved;
    a.compiles -= b.compiles;
    a.retargets -= b.retargets;
    a.cache_hits -= b.cache_hits;
    a.part_loads -= b.part_loads;
    a.disk_hits -= b.disk_hits;
    a.disk_misses -= b.disk_misses;
    a.launches -= b.launches;
    a.nodes_run -= b.nodes_run;
    return a;
  }
  /// A line for each counter that is not 0, or `nothing happened`:
  /// `sent      8 buffers, 128 bytes (0 used in place)`.
  std::string to_string() const;
  friend bool operator==(const RuntimeCounters&, const RuntimeCounters&) = default;
};

/// The current totals. Subtract two to see what a step did.
///
/// @code
/// reset_runtime_counters();
/// mark_sharding(ones({8}) * 2, Mesh({{"x", 4}}), P("x")).to_host();
/// std::cout << runtime_counters();
/// @endcode
RuntimeCounters runtime_counters();

/// Resets the counters to 0, for all threads: torch_xla's `clear_counters`. Unlike the difference
/// of two runtime_counters(), this affects other readers.
void reset_runtime_counters();

namespace internal {

struct AtomicCounters {
  std::atomic<std::uint64_t> buffers_sent{0}, bytes_sent{0}, bytes_aliased{0}, buffers_read{0},
      bytes_read{0}, buffers_moved{0}, bytes_moved{0}, compiles{0}, retargets{0}, cache_hits{0},
      part_loads{0}, disk_hits{0}, disk_misses{0}, launches{0}, nodes_run{0};
};
AtomicCounters& counters();
/// The totals, ignoring resets.
RuntimeCounters all_counted();
/// Adds to a counter and returns the new total.
inline std::uint64_t count(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) {
  return counter.fetch_add(by, std::memory_order_relaxed) + by;
}

}  // namespace internal

// How much memory of the devices is in use.

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

/// The memory of the devices of a mesh that are in this process, in mesh order.
/// @error errors of the plugin
std::vector<MemoryStats> memory_stats(const Mesh& mesh,
                                      SourceLocation where = SourceLocation::current());

}  // namespace meshard
