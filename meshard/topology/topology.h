// The devices there are, and how they are wired.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "meshard/base/source_location.h"
#include "meshard/topology/device_attributes.h"

namespace meshard {

/// A value: a list of devices with their places, in the order in which a plugin lists them.
class Topology {
 public:
  /// Whether the grid of a slice closes to a ring in x, y and z.
  using Wrap = InlineVector<bool, 4>;

  /// Any devices. Where the grid closes is taken from the kind of the devices if that is known:
  /// TPU v4, v5p and 7x close a direction whose size is a multiple of 4, v5e and v6e one of 16.
  /// @error no device; an id occurs twice; some devices have coordinates and others none, or of
  /// another length; an index is negative or a coordinate above 2^31.
  explicit Topology(std::vector<DeviceAttributes> devices,
                    SourceLocation where = SourceLocation::current());
  /// With the directions that are known to close.
  /// @error also: `wrap` has not a value for each coordinate.
  Topology(std::vector<DeviceAttributes> devices, Wrap wrap,
           SourceLocation where = SourceLocation::current());

  const std::vector<DeviceAttributes>& devices() const { return devices_; }
  std::int64_t size() const { return std::ssize(devices_); }
  bool has_coords() const { return !devices_.front().coords.empty(); }
  /// The kind of the first device.
  const std::string& kind() const { return devices_.front().kind; }
  /// Empty if it is not known where the grid closes.
  const std::optional<Wrap>& wrap() const { return wrap_; }
  /// Chips in each direction: the box around the coordinates of all devices.
  IntVector extent() const;

 private:
  std::vector<DeviceAttributes> devices_;
  std::optional<Wrap> wrap_;
};

/// What divides devices into granules: fast links within one, slow ones between them.
enum class Granule { kSlice, kProcess };

/// The devices of each granule, in the order of its index; a device without a slice index is of a
/// slice before all others.
std::vector<std::vector<DeviceAttributes>> granules_of(const Topology& topology, Granule granule);

}  // namespace meshard
