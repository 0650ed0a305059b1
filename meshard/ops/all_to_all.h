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

/// Exchanges parts of local values: splits one dimension over the devices and concatenates another.
/// Each device splits its local value along dimension `split` into one part per device along
/// `axes`, and concatenates the parts that it receives along dimension `concat`, in device order.
/// Negative dimensions count from the last. all_to_all with the two dimensions exchanged is the
/// inverse. An operand that does not vary over the axes is widened first.
/// @error x is not a local value; a dimension is out of range; the number of devices does not
/// divide dimension `split`.
Tensor all_to_all(In x, const CollectiveAxes& axes, std::int64_t split, std::int64_t concat);

}  // namespace meshard
