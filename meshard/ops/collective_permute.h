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

/// Sends local values along `axes`: for each pair (source, target), members of a group counted from
/// 0, the target gets the source's value. Who is no target gets zeros. A value that does not vary
/// over the axes is widened first.
/// @error x is not a local value; a member outside the group; one is source or target twice.
Tensor collective_permute(In x, const CollectiveAxes& axes,
                          const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs);

/// Sends the local values `by` members further around the ring along `axes`: member i's value goes
/// to member i + by, after the last comes the first. Negative: backward.
/// @error x is not a local value.
Tensor ring_shift(In x, const CollectiveAxes& axes, std::int64_t by = 1);

}  // namespace meshard
