// The search for short rings: tours through boxes, and which part of which direction each axis
// takes.
#pragma once
#include <vector>

#include "meshard/base/inline_vector.h"
#include "meshard/layout/int_tuple.h"

namespace meshard {

/// A value: one direction of a box, with its distances.
struct TourDirection {
  std::int64_t size = 1;
  /// Hops between neighbors, and from the last place back to the first.
  double step = 1, closing = 1;
  /// What a step adds to the number of a place.
  std::int64_t stride = 1;
};

/// A box of devices, as its directions.
using TourBox = InlineVector<TourDirection, 4>;

/// Whether a tour must return to its start.
enum class TourEnd { kReturns, kAnywhere };

/// A short tour that visits every place of a box once. Gives the numbers of the places in order,
/// and the length in hops. A tour that need not return is a snake. For a tour that returns, these
/// constructions are tried for each direction:
///
/// - one direction alone: in order if it closes, otherwise out over every other place and back over
///   the rest;
/// - a tour of the other directions that runs through the whole direction at each of its places,
///   back and forth by turns, or always onward if the direction is a ring;
/// - a comb: the direction's first column is the way back, and a snake fills the rest. If its size
///   is odd, the places of the last row are inserted in pairs, and a remaining one at the end.
///
/// If a grid has a tour of single steps and a direction of even size, this is such a tour. It is
/// never longer than the row-major order.
class RingTour {
 public:
  /// @pre sizes are at least 1; at most 16 directions
  explicit RingTour(TourBox box, TourEnd end = TourEnd::kReturns);
  double length() const { return length_; }
  /// Number of places of the box.
  std::int64_t size() const { return size_; }
  std::vector<std::int64_t> places() const;

 private:
  enum class Way { kPoint, kAlone, kToAndFro, kOnwards, kComb };

  struct Plan {
    double length = 0;
    Way way = Way::kPoint;
    std::size_t direction = 0;
  };
  using Mask = std::uint32_t;  // a set of directions
  struct Snake {
    std::int64_t size = 1;
    double length = 0, first_step = 0;
  };

  Plan plan(Mask mask) const;
  void offer(Plan& best, Plan plan) const;
  Plan alone(std::size_t k) const;
  Plan to_and_fro(std::size_t k, Mask rest) const;
  Plan onwards(std::size_t k, Mask rest) const;
  Plan comb(std::size_t k, Mask rest) const;
  InlineVector<std::size_t, 4> snake_order(Mask mask) const;
  Snake snake_length(Mask mask) const;
  std::int64_t size_of(Mask mask) const;
  Mask all() const { return (Mask{1} << box_.size()) - 1; }

  std::vector<std::int64_t> tour(Mask mask) const;
  std::vector<std::int64_t> snake(Mask mask) const;
  std::vector<std::int64_t> tour_alone(const TourDirection& line) const;
  std::vector<std::int64_t> tour_comb(const TourDirection& column, Mask rest) const;

  TourBox box_;
  TourEnd end_;
  std::int64_t size_ = 1;
  std::vector<Plan> plans_;  // by mask
  double length_ = 0;
};

/// A value: one direction of a physical grid.
struct RingDirection {
  std::int64_t size = 1;
  /// Whether the last place is linked to the first.
  bool closes = false;
  /// Whether neighboring places are one hop apart. False for the devices of one chip: 0 hops.
  bool has_distance = true;
};

/// A value: how the axes of a mesh are placed on the directions of a grid.
struct RingPlacement {
  /// A part of a direction that an axis takes.
  struct Part {
    std::size_t axis;
    std::int64_t size;
  };
  /// parts[direction], from the part with the longest steps to the part on neighboring places. No
  /// part has size 1.
  std::vector<std::vector<Part>> parts;

  /// True if the direction closes, has several parts, and its first part has size 2. The second
  /// half is then counted backward, so that the two halves meet at both ends. A ring of four
  /// becomes a square.
  bool is_mirrored(std::size_t direction, const std::vector<RingDirection>& grid) const;
};

/// For each axis, the box that its parts form. Strides are in places of the row-major grid.
std::vector<TourBox> axis_boxes(const RingPlacement& placement,
                                const std::vector<RingDirection>& grid, std::size_t axes);

/// The placement with the smallest mean step along its worst axis. Ties are broken by the smallest
/// mean over the axes, then by the shortest steps along the last axes. A candidate is rejected if
/// one of the first two, or the mean over all steps, is larger than for the assignment of
/// assign_torus in row-major order. At most 20,000 candidates are evaluated, which is all of them
/// unless many axes share many directions.
/// @param ends for each axis, whether it is a ring within the grid
/// @pre the products of the grid sizes and of the shape are equal
RingPlacement best_placement(const std::vector<RingDirection>& grid, IntView shape,
                             const std::vector<TourEnd>& ends);

}  // namespace meshard
