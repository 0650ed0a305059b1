// Lower bounds for the time of exchanges over the links of a grid of chips.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "meshard/explain/collectives/collective.h"
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
///   broadcast b if the source is in the box. The bytes that enter it are those that leave the
///   other chips.
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

  /// How many of the loads are those of cuts; they come first.
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

}  // namespace meshard
