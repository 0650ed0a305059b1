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

}  // namespace meshard
