#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/ops/collective_axes.h"

namespace meshard {

struct AllToAllAttributes {
  AxisList axes;
  std::int64_t size = 1;
  std::int64_t split = 0;
  std::int64_t concat = 0;
  MESHARD_FIELDS(axes, size, split, concat)
};

/// Each device cuts its local value along dimension `split` into one part for each device along
/// `axes`, and puts the parts that it gets one behind the other along dimension `concat`, in the
/// order of the devices. Negative dimensions count from the last. all_to_all with the two
/// dimensions exchanged takes it back. A value that does not vary over the axes is widened first.
/// @error x is not a local value; no such dimension; the devices do not divide dimension `split`.
Tensor all_to_all(In x, const CollectiveAxes& axes, std::int64_t split, std::int64_t concat);

}  // namespace meshard
