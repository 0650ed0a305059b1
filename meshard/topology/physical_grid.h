// Devices arranged as a grid by their coordinates.
#pragma once
#include <span>
#include <vector>

#include "meshard/base/source_location.h"
#include "meshard/topology/device_attributes.h"

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

}  // namespace meshard
