// The hardware to compile for, which may be absent, and its published performance figures.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/fields.h"
#include "meshard/base/result.h"
#include "meshard/pjrt/named_value.h"
#include "meshard/topology/topology.h"

namespace meshard {

/// Value type: a kind of hardware and a device count, given by name.
///
/// - TPUs as parsed by tpu_topology(): `v5e:4x4`, `v5p:4x4x4`, two slices `v5e:16x16*2`.
/// - GPUs: `h100:4x8` (4 nodes with 8 GPUs each; `h100:8` is one node), `h200:...`, `b200:...`,
///   `b300:...`, `mi300x:...`, `mi355x:...`.
/// - GPUs by NVLink domains: `gb200:72` is one domain of 72 GPUs, `gb300:2x72` two. The hosts of a
///   domain have 4 GPUs each. Device i is in slice (DeviceAttributes::slice_index) i / 72.
/// - The CPU plugin's virtual devices: `cpu:8`.
class Target {
 public:
  /// One CPU device.
  Target() : Target(parse("cpu:1").value()) {}
  /// @error invalid argument: unknown target name; the message lists the known ones.
  static Result<Target> parse(std::string_view name);

  /// The name as given to parse().
  const std::string& name() const { return name_; }
  /// The platform whose plugin compiles for the target: `tpu`, `cuda`, `rocm` or `cpu`.
  const std::string& platform() const { return platform_; }
  /// The devices, and how they are connected.
  const Topology& topology() const { return topology_; }
  /// Number of devices.
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

/// The name of the smallest target that contains devices with these attributes: `v5e:2x2` for TPUs
/// of the kind `TPU v5 lite` in a square. None if their attributes do not tell.
/// @param platform of all devices: `cpu`, `tpu`, `cuda` or `gpu`
std::optional<std::string> target_name_of(std::string_view platform,
                                          std::span<const DeviceAttributes> devices);

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
  /// The GPUs of a domain: those that are connected by fast links, over several hosts.
  /// 0: a domain is a host, with any number of GPUs.
  int most_in_domain = 0;
  /// The GPUs of one host of such a domain.
  int on_host = 0;
  /// LLVM's name of an AMD GPU: `gfx942`. Empty: a GPU of NVIDIA.
  std::string_view amd_architecture = {};

  /// The platform whose plugin compiles for it: `cuda` or `rocm`.
  std::string_view platform() const { return amd_architecture.empty() ? "cuda" : "rocm"; }

  /// The text of a GpuTargetConfigProto. It contains only fields that plugins of API 0.81 and 0.116
  /// both read; if fewer fields are set, the compiler aborts the process.
  std::string target_config() const;
};

/// All known GPUs.
const std::vector<GpuKind>& gpu_kinds();

/// The GPU with this name; none if unknown.
std::optional<GpuKind> find_gpu_kind(std::string_view name);

/// Value type: published figures of one device. All rates are peaks of dense products.
struct HardwareFigures {
  /// The rate of the matrix units for one element type. Counts multiplications and additions per
  /// second (a multiply-add counts as two).
  struct Rate {
    std::string element_type;  // `bf16`
    double flops = 0;
  };
  std::vector<Rate> matrix_rates;
  /// Bytes of main memory that a program may use, as reported by the vendor's driver or plugin.
  std::int64_t memory_bytes = 0;
  /// Bytes per second of main memory.
  double memory_bandwidth = 0;
  /// Bytes per second to the neighbors within a slice or node, over all links together, in one
  /// direction.
  double link_bandwidth = 0;
  /// Number of links.
  int links = 0;
  std::string link_name = {};
  /// Bytes per second to other slices or nodes. 0: not published.
  double network_bandwidth = 0;
  std::string network_name = {};
  /// Where each figure was published.
  std::vector<std::string> sources;
  /// Bytes per second between a device and the memory of its host, in one direction. 0: unknown.
  double host_bandwidth = 0;
  /// True if the switch between the devices can add what it forwards, so that each device sends the
  /// bytes of an all-reduce only once.
  bool switch_adds = false;
  /// True if the devices of a node have no switch between them, but each has one link to each of
  /// the others.
  bool direct_links = false;

  MESHARD_FIELDS(matrix_rates, memory_bytes, memory_bandwidth, link_bandwidth, links, link_name,
                 network_bandwidth, network_name, sources, host_bandwidth, switch_adds,
                 direct_links)
  /// The rate for an element type by its HLO or MLIR name (`bf16`, `f8e4m3fn`, `s8`). A type that
  /// is not listed uses the next wider type of its kind (integer or floating point), else the
  /// widest. If its kind has no rates, all rates are considered. 0 if there are no rates.
  double matrix_rate(std::string_view element_type) const;
};

/// The figures of a device kind; none if unknown. Takes the plugin's name (`TPU v5 lite`) or that
/// of a Target (`v5e`, `h100`). For chips that plugins list as two devices (v4, tpu7x), returns one
/// device's share. The CPU has no figures.
std::optional<HardwareFigures> hardware_figures(std::string_view device_kind);

/// The figures of a topology's devices; none if unknown. Also distinguishes the two configurations
/// of v4: with `/megacore`, one device has all of the chip.
std::optional<HardwareFigures> hardware_figures(const Topology& topology);

/// Main memory of one device in bytes, from published figures; none if unknown.
std::optional<std::int64_t> device_memory(const Target& target);

}  // namespace meshard
