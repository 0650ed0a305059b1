// How a program's arguments, results and named intermediates lie on the devices.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "meshard/array/shape.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// A value: how one argument, result or intermediate lies on the devices.
struct ValuePlacement {
  /// As the program calls it: `params.w1`, `p['wq']`; of an intermediate its op. Empty: no name.
  std::string name = {};
  /// The user's line; empty if not known.
  std::string place = {};
  TensorType type;
  /// What the program takes or gives: larger than `type` if the sharding does not divide it.
  TensorType padded;
  /// What the compiled program uses; none on one device without a mesh.
  std::optional<Sharding> sharding;
  /// True if the compiler chose the sharding, false if the program asked for it.
  bool chosen_by_compiler = false;
  /// The argument's memory becomes a result's.
  bool donated = false;

  /// One device's part, with its padding.
  TensorType shard() const;
  /// Bytes of padding on all devices together, each copy counted.
  std::int64_t padding_bytes() const;
  /// `f32[16,32] P("data", none), shard f32[8,32], 1 KiB`
  std::string to_string() const;
  friend bool operator==(const ValuePlacement&, const ValuePlacement&) = default;
};

}  // namespace meshard
