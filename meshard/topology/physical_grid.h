// Devices by their coordinates.
#pragma once
#include <span>
#include <vector>

#include "meshard/base/source_location.h"
#include "meshard/topology/device_attributes.h"

namespace meshard {

/// A value: the smallest box that holds all coordinates.
struct CoordinateBox {
  IntVector low, size;
};

/// @pre there is a device; all have as many coordinates
CoordinateBox box_of(std::span<const DeviceAttributes> devices);

/// A value: device ids in a full grid, row-major.
struct PhysicalGrid {
  /// Sizes of the directions x, y, z; after them the devices of a chip, if there are several.
  IntVector shape;
  std::vector<std::int64_t> ids;
  bool has_cores = false;
};

/// The devices as a full grid.
/// @error failed precondition: there are no coordinates; a place of the box is empty or taken
/// twice.
PhysicalGrid physical_grid(std::span<const DeviceAttributes> devices,
                           SourceLocation where = SourceLocation::current());

}  // namespace meshard
