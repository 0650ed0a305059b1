// The search for short rings: which part of which direction each axis takes, and in which order.
#pragma once
#include <vector>

#include "meshard/topology/ring_tour.h"

namespace meshard {

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
