// Devices arranged as a grid by their coordinates.
#pragma once
#include <span>
#include <vector>

#include "meshard/base/source_location.h"
#include "meshard/topology/topology.h"

namespace meshard {

/// A value: the smallest box that contains all coordinates.
struct CoordinateBox {
  IntVector low, size;
};

/// The box around the coordinates of the devices.
/// @pre at least one device; all have the same number of coordinates
CoordinateBox box_of(std::span<const DeviceAttributes> devices);

/// A value: device ids in a full grid, row-major.
struct PhysicalGrid {
  /// Sizes of the directions x, y, z, then the number of devices on a chip if that is above 1.
  IntVector shape;
  std::vector<std::int64_t> ids;
  bool has_cores = false;
};

/// Arranges devices as a full grid.
/// @error failed precondition: the devices have no coordinates; a place of the box has no device or
/// several.
PhysicalGrid physical_grid(std::span<const DeviceAttributes> devices,
                           SourceLocation where = SourceLocation::current());

/// The grid with reordered directions, so that a mesh of `shape` keeps the 2 x 2 x 1 chips of each
/// process together. Supports the same few pairs of grid and shape as JAX 0.10.
/// @error no order is known for this grid and shape
PhysicalGrid contiguous_grid(const PhysicalGrid& grid, IntView shape, SourceLocation where);

}  // namespace meshard
