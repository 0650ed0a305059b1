// The hardware to compile for, which may be absent.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/pjrt/named_value.h"
#include "meshard/topology/topology.h"

namespace meshard {

/// Value type: a kind of hardware and a device count, given by name.
///
/// - TPUs as parsed by tpu_topology(): `v5e:4x4`, `v5p:4x4x4`, two slices `v5e:16x16*2`.
/// - GPUs: `h100:4x8` (4 nodes with 8 GPUs each; `h100:8` is one node), `h200:...`, `b200:...`.
/// - The CPU plugin's virtual devices: `cpu:8`.
class Target {
 public:
  /// One CPU device.
  Target() : Target(parse("cpu:1").value()) {}
  /// @error invalid argument: unknown target name; the message lists the known ones.
  static Result<Target> parse(std::string_view name);

  /// The name as given to parse().
  const std::string& name() const { return name_; }
  /// The platform whose plugin compiles for the target: `tpu`, `cuda` or `cpu`.
  const std::string& platform() const { return platform_; }
  const Topology& topology() const { return topology_; }
  std::int64_t size() const { return topology_.size(); }
  /// Arguments for pjrt::TopologyDescription::create with that plugin.
  const std::string& plugin_name() const { return plugin_name_; }
  const std::vector<pjrt::NamedValue>& plugin_options() const { return plugin_options_; }

  friend bool operator==(const Target& a, const Target& b) { return a.name_ == b.name_; }

 private:
  Target(std::string name, std::string platform, Topology topology, std::string plugin_name,
         std::vector<pjrt::NamedValue> plugin_options)
      : name_(std::move(name)),
        platform_(std::move(platform)),
        topology_(std::move(topology)),
        plugin_name_(std::move(plugin_name)),
        plugin_options_(std::move(plugin_options)) {}
  std::string name_, platform_;
  Topology topology_;
  std::string plugin_name_;
  std::vector<pjrt::NamedValue> plugin_options_;
};

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
