// Link traffic of collectives, and the time that it takes.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "meshard/explain/collectives/collective.h"
#include "meshard/explain/cost/chip_grid.h"
#include "meshard/explain/cost/link_options.h"
#include "meshard/explain/process_map.h"
#include "meshard/mesh/mesh.h"
#include "meshard/target/hardware.h"
#include "meshard/topology/topology.h"

namespace meshard {

/// Value type: the load of one execution of a collective on one kind of link.
struct LinkUse {
  /// Link name as in HardwareFigures: `ICI`, `DCN`, ...
  std::string link;
  /// Bytes sent by one device.
  double bytes = 0;
  double seconds = 0;
  friend bool operator==(const LinkUse&, const LinkUse&) = default;
};

/// Models how the groups of collectives map to the hardware's links. Devices with different slice
/// indices, or without coordinates and in different processes, are connected by the network; others
/// by the links within a slice or node.
///
/// All groups of a collective run at the same time. Times are lower bounds at the published rates,
/// for groups of n devices and b bytes (Collective::bytes()):
/// - In a grid of chips, the bound of ChipGrid: it knows which directions are closed.
/// - Behind a switch, from what one device must send or receive at W bytes per second: all-gather,
///   reduce-scatter and all-to-all b (n-1)/n / W; permutation, send, broadcast b / W; all-reduce
///   2 b (n-1)/n / W, or b / W if the switch can add (HardwareFigures::switch_adds).
/// - A group over g slices with m devices each runs its part within the slice first. The slice's
///   devices share the rest: b/m (g-1)/g over the network (twice that for an all-reduce).
/// Each step of a ring of n, n-1 (twice that for an all-reduce), adds the latency, if it is given.
///
/// With LinkOptions::between_processes, processes take the place of slices. All devices of a
/// process share its link, and all groups run at the same time: if a process has d devices, d times
/// what one of them sends goes over the link. For a permutation, d is the number of its devices
/// that send to another process.
///
/// Sources: NCCL tests, doc/PERFORMANCE.md; J. Austin et al., How to Scale Your Model (2025),
/// part 3, "Sharded matrices"; for grids, see ChipGrid.
class LinkModel {
 public:
  /// Without a topology or mesh, all devices are assumed to be in one slice. If it is not known
  /// which directions of the grid are closed, all count as closed.
  /// @param processes the process of each device; required if `links` has a link between processes
  LinkModel(HardwareFigures figures, std::optional<Mesh> mesh, std::optional<Topology> topology,
            std::optional<ProcessMap> processes = std::nullopt, const LinkOptions& links = {});

  const HardwareFigures& figures() const { return figures_; }
  /// True if collectives over different axes use different links of this kind: those of a grid.
  /// Behind a switch, all share a device's links.
  bool axes_have_links(const std::string& link) const {
    return grid_.has_value() && link == figures_.link_name;
  }
  /// At most two entries: within slices, and over the network. Empty if no data leaves a device.
  std::vector<LinkUse> uses(const Collective& collective) const;
  /// Seconds of one execution, if its parts run one after the other: the sum over uses().
  double seconds(const Collective& collective) const;
  /// A lower bound for each kind of link, for all executions of these collectives in any order and
  /// also at the same time. Collectives that use different links do not add up.
  std::vector<LinkUse> together(std::span<const Collective* const> collectives) const;

 private:
  // How the devices of a group are placed.
  struct Span {
    double devices = 1;      // in a group
    double per_granule = 1;  // in a group, within one slice
    int directions = 0;      // directions of the grid that the group spans
  };
  struct Place {
    std::int64_t granule = 0, slice = 0, chip = 0;
    IntVector coords;
  };
  // The demand of one execution on one kind of link: `scale` times the largest of the loads, or
  // `scale` if there are none, and the latency.
  struct Demand {
    const std::string* link = nullptr;
    double bytes = 0, scale = 0, latency = 0;
    const std::vector<double>* loads = nullptr;
    double seconds() const;
  };
  const Place* place(std::int64_t device) const;
  Span span(const Collective& collective) const;
  Span measured(const AxisList& axes) const;
  bool leaves_granule(const Collective& collective) const;
  // How many devices of a process send over its link in a permutation.
  double senders(const Collective& one) const;
  std::vector<Demand> demands(const Collective& one) const;
  Demand permuted(const Collective& one) const;
  Demand within(double bytes, double seconds, double steps) const;
  // `sharing`: how many devices of a process send these bytes.
  Demand network(double bytes, double sharing, double steps) const;
  // The loads of the grid; null if the devices' places are not known.
  const std::vector<double>* loads(const Collective& one) const;
  const std::vector<double>* permutation_loads(const Collective& one) const;
  double link_rate() const;

  HardwareFigures figures_;
  std::optional<Mesh> mesh_;
  std::optional<ChipGrid> grid_;
  double devices_per_chip_ = 1;
  std::int64_t slice_ = 0;  // the slice whose links are counted; all slices are alike
  std::size_t num_directions_ = 0;
  std::unordered_map<std::int64_t, Place> places_;
  std::int64_t granules_ = 1;
  std::optional<ProcessMap> processes_;  // only if they are the granules
  double sharing_ = 1;                   // devices of a granule that share its network link
  double device_latency_ = 0, network_latency_ = 0;
  // Not thread-safe. By the axes' text, with the kind of collective for loads.
  mutable std::map<std::string, Span> spans_;
  mutable std::map<std::string, std::vector<double>> loads_;
};

}  // namespace meshard
