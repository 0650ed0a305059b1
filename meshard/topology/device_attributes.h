// What is known of where a device sits.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "meshard/layout/int_tuple.h"

namespace meshard {

/// A value: a device's place in its hardware. What is not known is empty.
struct DeviceAttributes {
  std::int64_t id = 0;
  /// The host that drives it.
  std::int64_t process_index = 0;
  /// Which of several separate machines (a TPU's slice) it belongs to.
  std::optional<std::int64_t> slice_index = {};
  /// Of its chip in the grid of its slice: x, y, z.
  IntVector coords = {};
  /// Its number among the devices of one chip.
  std::int64_t core_on_chip = 0;
  /// `TPU v5 lite`, ...
  std::string kind = {};

  /// `4 at (0,1,0) core 1 of slice 0, process 2`.
  std::string to_string() const;
  friend bool operator==(const DeviceAttributes&, const DeviceAttributes&) = default;
};

}  // namespace meshard
