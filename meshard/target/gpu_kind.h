// What the GPU compiler must be told of a GPU that is not here.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshard {

/// A value: the facts of a GPU that XLA's compiler asks for (GpuDeviceInfoProto in
/// xla/stream_executor/device_description.proto). Sources are in the table in gpu_kind.cc.
struct GpuKind {
  /// As in Target: `h100`.
  std::string_view name;
  /// As the CUDA plugin names it: `NVIDIA H100 80GB HBM3`.
  std::string_view description;
  int capability_major = 0;
  int capability_minor = 0;
  /// Multiprocessors.
  int core_count = 0;
  double clock_ghz = 0;
  /// Bytes, and bytes per second, of main memory; bytes of the second-level cache.
  std::int64_t memory_bytes = 0;
  std::int64_t memory_bandwidth = 0;
  std::int64_t cache_bytes = 0;

  /// The text of a GpuTargetConfigProto. It holds only fields that plugins of API 0.81 and 0.116
  /// both read; with fewer the compiler ends the process.
  std::string target_config() const;
};

/// The GPUs known here.
const std::vector<GpuKind>& gpu_kinds();

/// None: not known.
std::optional<GpuKind> find_gpu_kind(std::string_view name);

}  // namespace meshard
