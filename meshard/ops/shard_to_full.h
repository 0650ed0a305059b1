#pragma once
#include <optional>

#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// Of shard_to_full. The sharding is always set.
struct ShardToFullAttributes {
  std::optional<Sharding> sharding;
  Shape shape;
  MESHARD_FIELDS(sharding, shape)
};

/// The full value of `shape` of which each device holds the local value `x` as `sharding` says: the
/// way out of manual axes. Padding is cut off. A value that does not vary over an axis that splits
/// a dimension counts once for each device. Out of a region inside another one the value becomes
/// local to that one.
/// @error x is not a local value of the sharding's mesh; the sharding names axes that are not those
/// of the innermost region; x varies over such an axis that splits no dimension, so that the
/// devices along it hold different values; its shape is not that of a shard.
Tensor shard_to_full(In x, const Sharding& sharding, const Shape& shape);

}  // namespace meshard
