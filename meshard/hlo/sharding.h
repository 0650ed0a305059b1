// The shardings of values in a compiled module.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/sharding/op_sharding.h"

namespace meshard {

/// A value: the sharding of a value in a compiled module. Devices are logical devices.
struct HloSharding {
  OpSharding tiles{TileAssignment()};
  /// The same by axis names, which newer plugins write: one for each element of `tiles`, over the
  /// mesh as it appears in the module. Empty if the module names no axes.
  std::vector<Sharding> named = {};

  /// The sharding of each of `count` values: the elements of a tuple; otherwise one for all.
  std::vector<HloSharding> of_values(std::size_t count) const;
  std::string to_string() const { return tiles.to_string(); }
  /// Reads the bytes of an OpSharding message. @error data loss if they are damaged
  static Result<HloSharding> from_bytes(std::string_view bytes);
  friend bool operator==(const HloSharding&, const HloSharding&) = default;
};

}  // namespace meshard
