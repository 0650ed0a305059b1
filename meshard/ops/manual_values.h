// Local values of manual axes: the way in, the way out, variation over more axes, and the index of
// a device.
#pragma once

#include "meshard/graph/annotation.h"
#include "meshard/graph/tensor.h"
#include "meshard/ops/collectives.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// What each device holds of a full value that is sharded as `sharding` says: the way into the
/// manual axes `manual` of its mesh. The local shape is the shard's, rounded up: a dimension that
/// does not divide is padded with zeros first. The result varies over the axes that split a
/// dimension. Along the mesh's other axes the compiler lays out the local value as it likes.
///
/// For a value that is already local along other axes of the same mesh, this is the way into a
/// nested region.
/// @error x is inside these manual axes already, or inside axes of another mesh; no axis is given;
/// the sharding describes more dimensions than x has, names an axis that is not one of `manual` or
/// a part of one, or has open dimensions.
Tensor full_to_shard(In x, const Sharding& sharding, AxisSet manual);

/// The full value of `shape` of which each device holds the local value `x` as `sharding` says: the
/// way out of manual axes. Padding is cut off. A value that does not vary over an axis that splits
/// a dimension counts once for each device. Out of a region inside another one the value becomes
/// local to that one.
/// @error x is not a local value of the sharding's mesh; the sharding names axes that are not those
/// of the innermost region; x varies over such an axis that splits no dimension, so that the
/// devices along it hold different values; its shape is not that of a shard.
Tensor shard_to_full(In x, const Sharding& sharding, const Shape& shape);

/// Widens a local value: the result also varies over `axes`. From here on, each device has its own
/// value. No data moves. Ops on values that vary over different axes widen them automatically. Call
/// vary where a value that all devices share must enter a collective once per device. The
/// cotangents are summed over the axes (all_reduce).
/// @error the axes are not manual axes of x, or are sub-axes.
Tensor vary(In x, const CollectiveAxes& axes);

/// `x` as a local value that varies over all axes that `place` varies over.
/// @pre it may enter (may_enter), or belongs to an enclosing region
Tensor widened(const Tensor& x, const ManualAxes& place);

/// The local rank of each device along `axes`, an i32 of rank 0 that varies over them. It is 0 to
/// n-1, the first axis being the most significant. For use inside manual().
/// @error not inside manual(); an axis that is not manual there.
Tensor axis_index(const CollectiveAxes& axes, SourceLocation where = SourceLocation::current());
/// The same inside the manual axes of the local value `like`.
/// @error `like` is a full value; an axis that is not manual there.
Tensor axis_index(In like, const CollectiveAxes& axes);

}  // namespace meshard
