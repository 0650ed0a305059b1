#pragma once
#include "meshard/base/enum_names.h"
#include "meshard/base/fields.h"
#include "meshard/graph/tensor.h"
#include "meshard/ops/collective_axes.h"

namespace meshard {

/// How a collective combines the values of a group.
enum class ReduceKind : std::uint8_t {
  kSum,
  kProd,
  kMax,  ///< of bools: any
  kMin,  ///< of bools: all
};

template <>
struct EnumNames<ReduceKind> {
  static constexpr EnumName<ReduceKind> kNames[] = {{ReduceKind::kSum, "sum"},
                                                    {ReduceKind::kProd, "prod"},
                                                    {ReduceKind::kMax, "max"},
                                                    {ReduceKind::kMin, "min"}};
};

struct AllReduceAttributes {
  AxisList axes;
  std::int64_t size = 1;
  ReduceKind kind = ReduceKind::kSum;
  MESHARD_FIELDS(axes, size, kind)
};

/// The sum (product, maximum, minimum) of the local values of all devices along `axes`. Every
/// device along the axes receives it. The result no longer varies over axes that are listed whole;
/// it still varies over an axis of which only a sub-axis is listed. Equal maxima (minima) share the
/// cotangent.
/// @error x is not a local value, or does not vary over the axes, so that every device would
/// contribute the same value; the sum or product of bools.
Tensor all_reduce(In x, const CollectiveAxes& axes, ReduceKind kind = ReduceKind::kSum);

}  // namespace meshard
