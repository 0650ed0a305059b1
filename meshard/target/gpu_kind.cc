// Tested in meshard/target/target_test.cc.
#include "meshard/target/gpu_kind.h"

#include "meshard/base/cat.h"

namespace meshard {

// Multiprocessors, clocks, memory and caches: NVIDIA H100 Tensor Core GPU Architecture (white
// paper), table of the SXM5 form factor; NVIDIA H200 and HGX B200 data sheets; memory and cache
// bytes are the values that the CUDA driver reports for these devices.
const std::vector<GpuKind>& gpu_kinds() {
  static const std::vector<GpuKind> kinds = {
      {"h100", "NVIDIA H100 80GB HBM3", 9, 0, 132, 1.98, 85028765696, 3352320000000, 52428800},
      {"h200", "NVIDIA H200 141GB HBM3e", 9, 0, 132, 1.98, 151397597184, 4800000000000, 52428800},
      {"b200", "NVIDIA B200", 10, 0, 148, 1.965, 191514411008, 7672320000000, 132644864},
  };
  return kinds;
}

std::optional<GpuKind> find_gpu_kind(std::string_view name) {
  for (const GpuKind& kind : gpu_kinds())
    if (kind.name == name) return kind;
  return std::nullopt;
}

// Thread, block, register and shared memory limits: CUDA C++ Programming Guide, table "Technical
// Specifications per Compute Capability"; the values for 9.0 and 10.0 are equal.
// ACCELERATED_FEATURES is the `a` of sm_90a and sm_100a.
std::string GpuKind::target_config() const {
  return cat(
      "gpu_device_info { threads_per_block_limit: 1024 threads_per_warp: 32 "
      "shared_memory_per_block: 49152 shared_memory_per_core: 233472 threads_per_core_limit: 2048 "
      "core_count: ",
      core_count,
      " fpus_per_core: 128 block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 "
      "block_dim_limit_z: 65535 memory_bandwidth: ",
      memory_bandwidth, " l2_cache_size: ", cache_bytes, " clock_rate_ghz: ", clock_ghz,
      " device_memory_size: ", memory_bytes,
      " shared_memory_per_block_optin: 232448 registers_per_core_limit: 65536 "
      "registers_per_block_limit: 65536 cuda_compute_capability { major: ",
      capability_major, " minor: ", capability_minor,
      " feature_extension: ACCELERATED_FEATURES } } platform_name: \"CUDA\" "
      "device_description_str: \"",
      description, "\"");
}

}  // namespace meshard
