// What a collective asks of the hardware's links, and how long these take.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "meshard/explain/collective.h"
#include "meshard/mesh/mesh.h"
#include "meshard/target/hardware.h"
#include "meshard/topology/topology.h"

namespace meshard {

/// A value: what one execution of a collective asks of one kind of link.
struct LinkUse {
  /// `ICI`, `DCN`, ...: HardwareFigures' names.
  std::string link;
  /// Sent by one device.
  double bytes = 0;
  double seconds = 0;
  /// Of a permutation along a ring +1 or -1: the two ways have links of their own. Else 0.
  int way = 0;
  friend bool operator==(const LinkUse&, const LinkUse&) = default;
};

/// How the groups of collectives lie on the hardware. Devices with different slice indices, or
/// without coordinates and of different processes, are joined by the network, others by the links
/// of a slice or a node.
///
/// A group of n with b bytes (Collective::bytes()) on links of W bytes a second, as a ring:
/// - all-gather, reduce-scatter: b (n-1)/n; all-reduce: twice that; all-to-all: b (n-1)/n, and on a
///   torus at least b n/4 for each device, because data passes through others.
/// - a permutation, a send: b times the links that it passes, over one link each way.
/// On a torus W is two links for each direction in which the group extends; else all of them.
/// A group over g slices of m devices each does its part within the slice first, and the slice's
/// devices share the rest: b/m (g-1)/g over the network (twice for an all-reduce).
/// Sources: NCCL tests, doc/PERFORMANCE.md; J. Austin et al., How to Scale Your Model (2025),
/// part 3, "Sharded matrices".
class LinkModel {
 public:
  /// Without a topology or a mesh all devices are taken to be one slice.
  LinkModel(HardwareFigures figures, std::optional<Mesh> mesh, std::optional<Topology> topology);

  const HardwareFigures& figures() const { return figures_; }
  /// At most two: within slices, and over the network. Empty if nothing leaves a device.
  std::vector<LinkUse> uses(const Collective& collective) const;
  /// Seconds of one execution: the sum over uses().
  double seconds(const Collective& collective) const;

 private:
  // How the devices of a group lie.
  struct Span {
    double devices = 1;      // of a group
    double per_granule = 1;  // of a group, within one slice
    int directions = 0;      // of the torus; 0: no torus
  };
  // How far a permutation goes.
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
  LinkUse within(double bytes, double share) const;
  LinkUse network(double bytes) const;

  HardwareFigures figures_;
  std::optional<Mesh> mesh_;
  IntVector extent_;
  Topology::Wrap wrap_;
  std::unordered_map<std::int64_t, Place> places_;
  std::int64_t granules_ = 1;
  mutable std::map<std::string, Span> spans_;  // by the axes' text; for one thread
};

}  // namespace meshard
