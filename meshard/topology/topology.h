// The devices of a machine and how they are connected.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/source_location.h"
#include "meshard/layout/int_tuple.h"

namespace meshard {

/// A value: a device's location in its hardware. Unknown attributes are empty.
struct DeviceAttributes {
  std::int64_t id = 0;
  /// The process (host) that drives the device.
  std::int64_t process_index = 0;
  /// The index of the separate machine (TPU slice) that the device belongs to.
  std::optional<std::int64_t> slice_index = {};
  /// The coordinates of its chip in the grid of its slice: x, y, z.
  IntVector coords = {};
  /// The number of the device on its chip.
  std::int64_t core_on_chip = 0;
  /// `TPU v5 lite`, ...
  std::string kind = {};

  /// `4 at (0,1,0) core 1 of slice 0, process 2`.
  std::string to_string() const;
  friend bool operator==(const DeviceAttributes&, const DeviceAttributes&) = default;
};

/// A value: a list of devices with their locations, in the order in which a plugin lists them.
class Topology {
 public:
  /// For each of x, y and z: whether the grid of a slice closes to a ring.
  using Wrap = InlineVector<bool, 4>;

  /// A topology of any devices. Their kind determines which directions close, if it is known: TPU
  /// v4, v5p and 7x close a direction whose size is a multiple of 4; v5e and v6e, of 16.
  /// @error no devices; an id occurs twice; devices have different numbers of coordinates; an index
  /// is negative; a coordinate is above 2^31.
  explicit Topology(std::vector<DeviceAttributes> devices,
                    SourceLocation where = SourceLocation::current());
  /// A topology whose closed directions are given.
  /// @error also: `wrap` does not have one value for each coordinate.
  Topology(std::vector<DeviceAttributes> devices, Wrap wrap,
           SourceLocation where = SourceLocation::current());

  const std::vector<DeviceAttributes>& devices() const { return devices_; }
  std::int64_t size() const { return std::ssize(devices_); }
  bool has_coords() const { return !devices_.front().coords.empty(); }
  /// The kind of the first device.
  const std::string& kind() const { return devices_.front().kind; }
  /// Which directions close; empty if that is not known.
  const std::optional<Wrap>& wrap() const { return wrap_; }
  /// The number of chips in each direction, in the box around the coordinates of all devices.
  const IntVector& extent() const { return extent_; }

  /// `16 devices of TPU v5 lite, 4x4x1 chips`; closed directions are marked: `4*x4*x8`.
  std::string to_string() const;

 private:
  std::vector<DeviceAttributes> devices_;
  IntVector extent_;
  std::optional<Wrap> wrap_;
};

/// For each direction of a slice with `extent` chips: whether it closes to a ring. Empty if that is
/// not known for devices of this kind. A direction closes if its size is a multiple of the
/// generation's TpuGeneration::closing_multiple.
std::optional<Topology::Wrap> closed_directions(std::string_view kind, const IntVector& extent);

/// What divides devices into granules, which have fast links inside and slow links between them.
enum class Granule { kSlice, kProcess };
/// `slice`, `process`.
std::string_view to_string(Granule granule);

/// The devices of each granule, in the order of the granule indices. Devices without a slice index
/// form a slice before all others.
std::vector<std::vector<DeviceAttributes>> granules_of(const Topology& topology, Granule granule);

/// Joins meshes of shape `inner` into one mesh of shape inner[i] * outer[i], and returns its values
/// in mesh order. The index along axis i is the index of the granule along axis i times inner[i],
/// plus the index within the granule. `meshes` is row-major over `outer`.
/// @pre the number of meshes is the product of `outer`; each has as many values as the product of
/// `inner`
std::vector<std::int64_t> join_granules(const std::vector<std::vector<std::int64_t>>& meshes,
                                        IntView inner, IntView outer);

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
