#pragma once
#include <optional>

#include "meshard/graph/annotation.h"
#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// Of full_to_shard. The sharding is always set.
struct FullToShardAttributes {
  std::optional<Sharding> sharding;
  AxisList manual;
  MESHARD_FIELDS(sharding, manual)
};

/// What each device holds of a full value that is sharded as `sharding` says: the way into the
/// manual axes `manual` of its mesh. The local shape is the shard's, rounded up: a dimension that
/// does not divide is padded with zeros first. The result varies over the axes that split a
/// dimension. Along the mesh's other axes the compiler lays out the local value as it likes.
///
/// Of a value that is local already, along other axes of the same mesh: the way into a region
/// inside that one.
/// @error x is inside these manual axes already, or inside axes of another mesh; no axis is given;
/// the sharding describes more dimensions than x has, names an axis that is not one of `manual` or
/// a part of one, or has open dimensions.
Tensor full_to_shard(In x, const Sharding& sharding, AxisSet manual);

}  // namespace meshard
