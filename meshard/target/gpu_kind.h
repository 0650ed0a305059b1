// Descriptions of GPUs for compiling without the GPU present.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshard {

/// Value type: the GPU properties that XLA's compiler requires (GpuDeviceInfoProto in
/// xla/stream_executor/device_description.proto). The table in gpu_kind.cc lists sources.
struct GpuKind {
  /// The name in Target: `h100`.
  std::string_view name;
  /// The CUDA plugin's name: `NVIDIA H100 80GB HBM3`.
  std::string_view description;
  int capability_major = 0;
  int capability_minor = 0;
  /// Number of multiprocessors.
  int core_count = 0;
  double clock_ghz = 0;
  /// Main memory in bytes, its bandwidth in bytes per second, and the L2 cache in bytes.
  std::int64_t memory_bytes = 0;
  std::int64_t memory_bandwidth = 0;
  std::int64_t cache_bytes = 0;

  /// The text of a GpuTargetConfigProto. It contains only fields that plugins of API 0.81 and 0.116
  /// both read; if fewer fields are set, the compiler aborts the process.
  std::string target_config() const;
};

/// All known GPUs.
const std::vector<GpuKind>& gpu_kinds();

/// The GPU with this name; none if unknown.
std::optional<GpuKind> find_gpu_kind(std::string_view name);

}  // namespace meshard
