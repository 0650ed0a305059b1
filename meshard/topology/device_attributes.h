// The location of a device in its hardware.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

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

}  // namespace meshard
