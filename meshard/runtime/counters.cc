#include "meshard/runtime/counters.h"

#include <mutex>

#include "meshard/base/cat.h"
#include "meshard/pjrt/client.h"
#include "meshard/runtime/internal/device_assignment.h"
#include "meshard/runtime/internal/released_arrays.h"
#include "meshard/runtime/runtime.h"

namespace meshard {
namespace {

std::mutex zero_mutex;
RuntimeCounters zero;  // totals at the last reset; guarded by zero_mutex

}  // namespace

internal::AtomicCounters& internal::counters() {
  static AtomicCounters all;
  return all;
}

RuntimeCounters internal::all_counted() {
  auto& c = internal::counters();
  return {.buffers_sent = c.buffers_sent,
          .bytes_sent = c.bytes_sent,
          .bytes_aliased = c.bytes_aliased,
          .buffers_read = c.buffers_read,
          .bytes_read = c.bytes_read,
          .buffers_moved = c.buffers_moved,
          .bytes_moved = c.bytes_moved,
          .compiles = c.compiles,
          .retargets = c.retargets,
          .cache_hits = c.cache_hits,
          .part_loads = c.part_loads,
          .disk_hits = c.disk_hits,
          .disk_misses = c.disk_misses,
          .launches = c.launches,
          .nodes_run = c.nodes_run};
}

RuntimeCounters runtime_counters() {
  std::lock_guard lock(zero_mutex);
  return internal::all_counted() - zero;
}

void reset_runtime_counters() {
  std::lock_guard lock(zero_mutex);
  zero = internal::all_counted();
}

std::string RuntimeCounters::to_string() const {
  std::string out;
  auto counted = [](std::uint64_t count, std::string_view what) {
    return cat(count, ' ', what, count == 1 ? "" : "s");
  };
  auto line = [&](bool shown, const auto&... text) {
    if (shown) append(out, cat(text..., "\n"));
  };
  line(buffers_sent > 0, "sent      ", counted(buffers_sent, "buffer"), ", ",
       counted(bytes_sent, "byte"), " (", bytes_aliased, " used in place)");
  line(buffers_read > 0, "read      ", counted(buffers_read, "buffer"), ", ",
       counted(bytes_read, "byte"));
  line(buffers_moved > 0, "moved     ", counted(buffers_moved, "buffer"), ", ",
       counted(bytes_moved, "byte"));
  line(compiles > 0, "compiled  ", counted(compiles, "program"));
  line(retargets > 0, "loaded    ", counted(retargets, "program"), " for other devices");
  line(cache_hits > 0, "found     ", counted(cache_hits, "program"), " in the cache");
  line(part_loads > 0, "loaded    ", counted(part_loads, "program"), " for each device");
  line(disk_hits > 0, "loaded    ", counted(disk_hits, "program"), " from disk");
  line(launches > 0, "launched  ", counted(launches, "program"), ", ", counted(nodes_run, "node"));
  return out.empty() ? "nothing happened\n" : out;
}

namespace {

MemoryStats stats_of(const pjrt::Device& device, SourceLocation where) {
  internal::ReleasedArrays::of_thread().destroy();
  Result<pjrt::DeviceMemoryStats> reported = device.memory_stats();
  MemoryStats stats{.device = device.id(),
                    .live_bytes = device.live_bytes(),
                    .peak_live_bytes = device.peak_live_bytes()};
  if (!reported.ok()) {
    if (reported.error().code() == ErrorCode::kUnimplemented) return stats;
    throw reported.error().at(where);
  }
  stats.bytes_in_use = reported->bytes_in_use;
  stats.peak_bytes_in_use = reported->peak_bytes_in_use;
  stats.bytes_limit = reported->bytes_limit;
  stats.largest_free_block = reported->largest_free_block;
  return stats;
}

}  // namespace

std::string MemoryStats::to_string() const {
  std::string out =
      cat("device ", device, ": ", live_bytes, " bytes live (at most ", peak_live_bytes, ")");
  auto add = [&](const std::optional<std::int64_t>& bytes, std::string_view what) {
    if (bytes) append(out, cat(", ", *bytes, ' ', what));
  };
  add(bytes_in_use, "in use");
  add(peak_bytes_in_use, "at most in use");
  add(bytes_limit, "usable");
  add(largest_free_block, "in the largest free block");
  return out;
}

MemoryStats memory_stats(std::int64_t device, std::string_view device_type, SourceLocation where) {
  const pjrt::Device& found = device_of(runtime_client(device_type, where), device, where);
  if (!found.addressable())
    throw Error(ErrorCode::kFailedPrecondition,
                cat("[runtime] device ", device, " is in process ", found.process_index()), where);
  return stats_of(found, where);
}

std::vector<MemoryStats> memory_stats(const Mesh& mesh, SourceLocation where) {
  const pjrt::Client& client = runtime_client(mesh, where);
  std::vector<MemoryStats> all;
  for (const LocalPosition& at : local_positions(client, mesh, where))
    all.push_back(stats_of(*at.device, where));
  return all;
}

}  // namespace meshard
