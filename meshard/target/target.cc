#include "meshard/target/target.h"

#include "meshard/base/cat.h"
#include "meshard/layout/text_scanner.h"
#include "meshard/topology/tpu_topology.h"

namespace meshard {
namespace {

// As for TPUs: device counts are bounded, so that a typo does not exhaust memory.
constexpr std::int64_t kMostGpus = std::int64_t{1} << 20;
// The CPU plugin packs device ids so that one process can have at most 2048 devices.
constexpr std::int64_t kMostCpus = 2048;

std::string known_targets() {
  std::string gpus;
  for (const GpuKind& kind : gpu_kinds()) gpus += cat("`", kind.name, ":4x8`, ");
  return cat(
      "TPUs `v5e:4x4`, `v6e:16x16`, `v5p:4x4x4`, `v4:4x4x4`, `tpu7x:4x4x4`, several slices "
      "`v5e:16x16*2`; GPUs by nodes and devices of a node ",
      gpus, "`h100:8`; virtual CPU devices `cpu:8`");
}

Error bad_target(std::string_view name, std::string_view why) {
  return Error(ErrorCode::kInvalidArgument,
               cat("[target] `", name, "`: ", why, "; known targets are ", known_targets()));
}

std::int64_t read_count(TextScanner& scanner, std::int64_t most) {
  std::int64_t count = scanner.integer();
  if (count < 1 || count > most) scanner.fail(cat("a size must be 1 to ", most, ", got ", count));
  return count;
}

Topology nodes_of(std::int64_t nodes, std::int64_t devices_per_node, std::string_view kind) {
  std::vector<DeviceAttributes> devices;
  devices.reserve(static_cast<std::size_t>(nodes * devices_per_node));
  for (std::int64_t id = 0; id < nodes * devices_per_node; ++id)
    devices.push_back({.id = id,
                       .process_index = id / devices_per_node,
                       .slice_index = {},
                       .coords = {},
                       .core_on_chip = 0,
                       .kind = std::string(kind)});
  return Topology(std::move(devices));
}

struct PluginTopology {
  std::string name;
  std::vector<pjrt::NamedValue> options;
};

// libtpu takes the number of slices and the v4 megacore configuration as options, not in the name.
PluginTopology tpu_plugin_topology(std::string_view name) {
  constexpr std::string_view kMegacore = "/megacore";
  PluginTopology plugin{std::string(name), {}};
  if (plugin.name.ends_with(kMegacore)) {
    plugin.name.resize(plugin.name.size() - kMegacore.size());
    plugin.options.push_back({"chip_config_name", std::string("megacore")});
  }
  if (std::size_t star = plugin.name.find('*'); star != std::string::npos) {
    TextScanner scanner("slices", std::string_view(plugin.name).substr(star + 1));
    if (std::int64_t slices = scanner.integer(); slices > 1)
      plugin.options.push_back({"num_slices", slices});
    plugin.name.resize(star);
  }
  std::erase(plugin.name, ' ');
  return plugin;
}

struct GpuNodes {
  std::int64_t nodes = 1, devices = 1;
};

GpuNodes read_gpu_nodes(TextScanner& scanner) {
  GpuNodes gpus;
  if (scanner.at_end()) return gpus;
  scanner.expect(":");
  gpus.devices = read_count(scanner, kMostGpus);
  if (!scanner.accept("x")) return gpus;
  gpus.nodes = gpus.devices;
  gpus.devices = read_count(scanner, kMostGpus / gpus.nodes);
  return gpus;
}

std::int64_t read_cpus(TextScanner& scanner) {
  if (scanner.at_end()) return 1;
  scanner.expect(":");
  return read_count(scanner, kMostCpus);
}

}  // namespace

Result<Target> Target::parse(std::string_view name) {
  std::string_view family = name.substr(0, name.find(':'));
  std::string_view rest = name.substr(family.size());
  std::string own(name);
  if (auto gpu = find_gpu_kind(family)) {
    auto gpus = parse_whole("GPUs", rest, read_gpu_nodes);
    if (!gpus.ok()) return bad_target(name, gpus.error().message());
    std::string shape = cat("1x", gpus->nodes, "x", gpus->devices);
    return Target(own, "cuda", nodes_of(gpus->nodes, gpus->devices, gpu->description), own,
                  {{"target_config", gpu->target_config()}, {"topology", shape}});
  }
  if (family == "cpu") {
    auto count = parse_whole("CPU devices", rest, read_cpus);
    if (!count.ok()) return bad_target(name, count.error().message());
    return Target(own, "cpu", nodes_of(1, *count, "cpu"), own, {{"cpu_device_count", *count}});
  }
  auto tpu = tpu_topology(name);
  if (!tpu.ok()) return bad_target(name, tpu.error().message());
  PluginTopology plugin = tpu_plugin_topology(name);
  return Target(own, "tpu", *std::move(tpu), plugin.name, plugin.options);
}

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
