// Link traffic of collectives, and the time that it takes.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "meshard/explain/collectives/collective.h"
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
  /// +1 or -1 for a permutation around a ring, whose two directions use separate links. Else 0.
  int way = 0;
  friend bool operator==(const LinkUse&, const LinkUse&) = default;
};

/// Models how the groups of collectives map to the hardware's links. Devices with different slice
/// indices, or without coordinates and in different processes, are connected by the network; others
/// by the links within a slice or node.
///
/// The time for a group of n devices with b bytes (Collective::bytes()) on links of W bytes per
/// second is that of a ring:
/// - all-gather, reduce-scatter: b (n-1)/n; all-reduce: twice that; all-to-all: b (n-1)/n, and on a
///   torus at least b n/4 for each device, because data passes through other devices.
/// - permutation, send: b times the number of hops, over one link each way.
/// Each of the ring's n-1 steps (twice that for an all-reduce) adds the latency, if it is given.
/// On a torus, W is two links for each direction that the group spans; otherwise all links. A group
/// over g slices with m devices each runs its part within the slice first, and the slice's devices
/// share the rest: b/m (g-1)/g over the network (twice that for an all-reduce).
///
/// With LinkOptions::between_processes, processes take the place of slices. All devices of a
/// process share its link, and all groups run at the same time: if a process has d devices, d times
/// what one of them sends goes over the link. For a permutation, d is the number of its devices
/// that send to another process.
///
/// Sources: NCCL tests, doc/PERFORMANCE.md; J. Austin et al., How to Scale Your Model (2025),
/// part 3, "Sharded matrices".
class LinkModel {
 public:
  /// Without a topology or mesh, all devices are assumed to be in one slice.
  /// @param processes the process of each device; required if `links` has a link between processes
  LinkModel(HardwareFigures figures, std::optional<Mesh> mesh, std::optional<Topology> topology,
            std::optional<ProcessMap> processes = std::nullopt, const LinkOptions& links = {});

  const HardwareFigures& figures() const { return figures_; }
  /// At most two entries: within slices, and over the network. Empty if no data leaves a device.
  std::vector<LinkUse> uses(const Collective& collective) const;
  /// Seconds of one execution: the sum over uses().
  double seconds(const Collective& collective) const;

 private:
  // How the devices of a group are placed.
  struct Span {
    double devices = 1;      // in a group
    double per_granule = 1;  // in a group, within one slice
    int directions = 0;      // torus directions that the group spans; 0: no torus
  };
  // The distance of a permutation.
  struct Way {
    double hops = 1;
    bool leaves_granule = false;
  };
  struct Place {
    std::int64_t granule = 0;
    IntVector coords;
  };
  const Place* place(std::int64_t device) const;
  Span span(const Collective& collective) const;
  Span measured(const AxisList& axes) const;
  Way way(const Collective& collective) const;
  double hops(const Place& a, const Place& b) const;
  // How many devices of a process send over its link in a permutation.
  double senders(const Collective& one) const;
  LinkUse within(double bytes, double share, double steps) const;
  // `sharing`: how many devices of a process send these bytes.
  LinkUse network(double bytes, double sharing, double steps) const;

  HardwareFigures figures_;
  std::optional<Mesh> mesh_;
  IntVector extent_;
  Topology::Wrap wrap_;
  std::unordered_map<std::int64_t, Place> places_;
  std::int64_t granules_ = 1;
  std::optional<ProcessMap> processes_;  // only if they are the granules
  double sharing_ = 1;                   // devices of a granule that share its network link
  double device_latency_ = 0, network_latency_ = 0;
  mutable std::map<std::string, Span> spans_;  // by the axes' text; not thread-safe
};

}  // namespace meshard
