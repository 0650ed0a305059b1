// The search for short rings: which part of which direction each axis takes, and in which order.
#pragma once
#include <vector>

#include "meshard/topology/ring_tour.h"

namespace meshard {

/// A value: one direction of a physical grid.
struct RingDirection {
  std::int64_t size = 1;
  /// The last place is next to the first.
  bool closes = false;
  /// The places are one hop apart; those on one chip none.
  bool has_distance = true;
};

/// A value: the axes of a mesh on the directions of a grid.
struct RingPlacement {
  /// A part of a direction that an axis takes.
  struct Part {
    std::size_t axis;
    std::int64_t size;
  };
  /// parts[direction], from the one with the longest steps to the one on neighboring places. None
  /// has size 1.
  std::vector<std::vector<Part>> parts;

  /// True if the direction closes and its first part has two places: the second half is then
  /// counted backward, so that the two halves meet at both ends. A ring of four becomes a square.
  bool is_mirrored(std::size_t direction, const std::vector<RingDirection>& grid) const;
};

/// For each axis, the box of its parts; strides number the places of the row-major grid.
std::vector<TourBox> axis_boxes(const RingPlacement& placement,
                                const std::vector<RingDirection>& grid, std::size_t axes);

/// The placement whose longest mean step along an axis is shortest; of these the one with the least
/// mean over the axes, then with the shortest steps along the last axes. No candidate is taken that
/// is longer, in one of the first two or in the mean over all steps, than the assignment of
/// assign_torus in row-major order. At most 20,000 candidates are looked at, which are all there
/// are unless many axes share many directions.
/// @param ends for each axis, whether it is a ring within the grid
/// @pre the sizes of the grid and of the shape multiply to the same
RingPlacement best_placement(const std::vector<RingDirection>& grid, IntView shape,
                             const std::vector<TourEnd>& ends);

}  // namespace meshard
