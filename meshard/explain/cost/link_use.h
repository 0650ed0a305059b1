// Link traffic of collectives, and the time that it takes.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "meshard/explain/collectives/collective.h"
#include "meshard/explain/process_map.h"
#include "meshard/mesh/mesh.h"
#include "meshard/target/target.h"
#include "meshard/topology/topology.h"

namespace meshard {

/// Groups of members that exchange data at the same time: the chip of each member.
using ChipGroups = std::vector<std::vector<std::int64_t>>;

/// The chips of one slice and the links between neighbors. A chip's number is its position in the
/// grid, row-major.
///
/// Data that has to cross a set of links cannot take less time than its bytes, divided by the rate
/// of these links. This holds for every algorithm and every routing, so the largest of these times
/// over several sets of links is a lower bound for the time. The sets:
/// - Cuts: the links that leave a box of chips, and those that enter it. In a group of n members of
///   which k are in the box, these bytes leave the box, for a collective of b bytes
///   (Collective::bytes()): all-gather b k/n, since the others need all parts in the box;
///   reduce-scatter b (n-k)/n, the sums that the others need; all-reduce b; all-to-all b k(n-k)/n;
///   broadcast b if the source is in the box. The bytes that enter it equal the bytes that leave
///   the other chips.
/// - All links of some directions. The links that bring one byte of an all-gather, a broadcast or a
///   reduce-scatter to its members connect all of them. If the members are at c places along these
///   directions, these are at least c-1 links. An all-reduce without reduction in the network
///   takes c-1 messages to form each sum and c-1 to distribute it (P. Patarasuk and X. Yuan,
///   Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009). In an all-to-all,
///   each part passes as many links as its two members are apart.
/// - For permutations, the links of one direction between two adjacent places: messages take a
///   shortest way in each direction, and half of them each way if both are equally long.
///
/// A ring reaches these bounds: for an all-gather over n chips of a closed direction, two links of
/// W bytes per second give b (n-1)/n / 2W. On an open line of n chips, the first chip has one link
/// for all that it receives: b (n-1)/n / W.
class ChipGrid {
 public:
  /// @param wrap the directions that are closed. Directions of one or two chips never are.
  /// @pre one entry of `wrap` for each direction
  ChipGrid(IntVector extent, Topology::Wrap wrap);

  std::int64_t size() const { return size_; }
  /// The number of the chip at these coordinates.
  /// @pre inside the grid
  std::int64_t chip(const IntVector& coords) const;
  /// How many links start at each chip on average.
  double links_per_chip() const;

  /// How many of the loads belong to cuts; they come first.
  std::size_t num_cuts() const { return 2 * boxes_.size(); }

  /// For each set of links: the time that it needs for a collective of one byte over groups that
  /// run at the same time, if each link transfers one byte per second. Times of several collectives
  /// may be added for each set; the largest sum is then the bound for all of them.
  std::vector<double> loads(CollectiveKind kind, const ChipGroups& groups) const;
  /// The same for a permutation that sends one byte between each of these pairs of chips.
  std::vector<double> permutation_loads(
      const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs) const;

 private:
  struct Interval {
    std::int64_t first = 0, count = 0;
    int ends = 0;  // ends of the interval that have links to other chips
  };
  struct Box {
    std::vector<std::size_t> intervals;  // one for each direction
    double links = 0;                    // that leave the box
  };
  std::int64_t coordinate(std::int64_t chip, std::size_t direction) const {
    return chip / stride_[direction] % extent_[direction];
  }
  std::vector<Interval> intervals(std::size_t direction, bool all) const;
  bool inside(const Box& box, std::int64_t chip) const;
  void add_boxes();
  double apart(std::size_t direction, std::int64_t from, std::int64_t to) const;
  double links_of(std::size_t direction) const;
  std::size_t num_loads() const { return num_cuts() + (std::size_t{1} << extent_.size()); }
  void add_cut_loads(CollectiveKind kind, const std::vector<std::int64_t>& group,
                     std::vector<double>& loads) const;
  void add_set_loads(CollectiveKind kind, const std::vector<std::int64_t>& group,
                     std::vector<double>& loads) const;
  double connecting(const std::vector<std::int64_t>& group, std::size_t set) const;
  double distances(const std::vector<std::int64_t>& group, std::size_t direction) const;

  IntVector extent_;
  Topology::Wrap wrap_;
  IntVector stride_;
  std::int64_t size_ = 1;
  std::vector<std::vector<Interval>> intervals_;
  std::vector<Box> boxes_;
};

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
/// - In a grid of chips, the bound of ChipGrid, which considers closed directions.
/// - Behind a switch, from what one device must send or receive at W bytes per second: all-gather,
///   reduce-scatter and all-to-all b (n-1)/n / W; permutation, send, broadcast b / W; all-reduce
///   2 b (n-1)/n / W, or b / W if the switch can add (HardwareFigures::switch_adds).
/// - Without a switch, with a link between any two devices of a node (direct_links): the same with
/// W
///   of the n-1 links between the members; for permutations and sends, of one link.
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
  // `share`: the part of a device's links that carry the bytes.
  Demand within(double bytes, double share, double steps) const;
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
  // Not thread-safe. The keys are the texts of axes, for loads_ with the kind of collective.
  mutable std::map<std::string, Span> spans_;
  mutable std::map<std::string, std::vector<double>> loads_;
};

}  // namespace meshard
