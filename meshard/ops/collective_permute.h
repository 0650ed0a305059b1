#pragma once
#include <utility>
#include <vector>

#include "meshard/graph/tensor.h"
#include "meshard/ops/collective_axes.h"

namespace meshard {

struct CollectivePermuteAttributes {
  AxisList axes;
  std::int64_t size = 1;
  std::vector<std::int64_t> sources, targets;
  MESHARD_FIELDS(axes, size, sources, targets)
};

/// Sends local values between devices along `axes`. For each pair (source, target), the target
/// receives the source's value; both are indices of members of a group, from 0. Devices that are
/// not a target receive zeros. A value that does not vary over the axes is widened first.
/// @error x is not a local value; an index is outside the group, or occurs twice as source or as
/// target.
Tensor collective_permute(In x, const CollectiveAxes& axes,
                          const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs);

/// Sends each local value `by` members further around the ring along `axes`. Member i's value goes
/// to member i + by, modulo the size of the group. Negative: backward.
/// @error x is not a local value.
Tensor ring_shift(In x, const CollectiveAxes& axes, std::int64_t by = 1);

}  // namespace meshard
