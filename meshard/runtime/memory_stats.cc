// Tested in tests/e2e/memory_stats_test.cc.
#include "meshard/runtime/memory_stats.h"

#include "meshard/base/cat.h"
#include "meshard/pjrt/client.h"
#include "meshard/runtime/internal/device_assignment.h"
#include "meshard/runtime/internal/released_arrays.h"
#include "meshard/runtime/runtime.h"

namespace meshard {
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
