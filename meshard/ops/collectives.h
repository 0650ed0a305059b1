// Collectives: ops on local values that communicate along axes of the mesh.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/base/enum_names.h"
#include "meshard/base/fields.h"
#include "meshard/graph/tensor.h"
#include "meshard/mesh/axis_ref.h"

namespace meshard {

/// A value: the mesh axes that a collective runs over, as a parameter: `"x"`, `{"x", "y"}`,
/// `AxisRef("x", 1, 2)`. The first axis is the most significant in the order of a group's members.
class CollectiveAxes {
 public:
  CollectiveAxes(const char* axis) : axes_{AxisRef(axis)} {}            // NOLINT: a parameter
  CollectiveAxes(std::string_view axis) : axes_{AxisRef(axis)} {}       // NOLINT
  CollectiveAxes(const std::string& axis) : axes_{AxisRef(axis)} {}     // NOLINT
  CollectiveAxes(AxisRef axis) : axes_{std::move(axis)} {}              // NOLINT
  CollectiveAxes(std::initializer_list<AxisRef> axes) : axes_(axes) {}  // NOLINT
  CollectiveAxes(AxisList axes) : axes_(std::move(axes)) {}             // NOLINT

  const AxisList& list() const { return axes_; }

 private:
  AxisList axes_;
};

/// Concatenates the local values of all devices along `axes`, on each of these devices. They are
/// concatenated along `dimension`; negative counts from the last. The result is varying over the
/// axes, because each device may use it differently; its cotangents are summed and scattered
/// (reduce_scatter). An operand that does not vary over the axes is widened first.
/// @error x is not a local value; the dimension is out of range.
Tensor all_gather(In x, const CollectiveAxes& axes, std::int64_t dimension = 0);

/// all_gather with a result that is unvarying over the axes.
/// It can leave the manual region as a replicated value. Each device takes its own part of the
/// cotangent.
/// @error as all_gather; a sub-axis.
Tensor all_gather_invariant(In x, const CollectiveAxes& axes, std::int64_t dimension = 0);

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

/// The sum (product, maximum, minimum) of the local values of all devices along `axes`. Every
/// device along the axes receives it. The result no longer varies over axes that are listed whole;
/// it still varies over an axis of which only a sub-axis is listed. Equal maxima (minima) share the
/// cotangent.
/// @error x is not a local value, or does not vary over the axes, so that every device would
/// contribute the same value; the sum or product of bools.
Tensor all_reduce(In x, const CollectiveAxes& axes, ReduceKind kind = ReduceKind::kSum);

/// Exchanges parts of local values: splits one dimension over the devices and concatenates another.
/// Each device splits its local value along dimension `split` into one part per device along
/// `axes`, and concatenates the parts that it receives along dimension `concat`, in device order.
/// Negative dimensions count from the last. all_to_all with the two dimensions exchanged is the
/// inverse. An operand that does not vary over the axes is widened first.
/// @error x is not a local value; a dimension is out of range; the number of devices does not
/// divide dimension `split`.
Tensor all_to_all(In x, const CollectiveAxes& axes, std::int64_t split, std::int64_t concat);

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

/// Sums the local values of all devices along `axes` and leaves each device one part. The sum is
/// split along `dimension` (negative counts from the last) into one part per device. An operand
/// that does not vary over the axes is widened first.
/// @error x is not a local value; the dimension is out of range; the number of devices does not
/// divide its size; bools.
Tensor reduce_scatter(In x, const CollectiveAxes& axes, std::int64_t dimension = 0);

}  // namespace meshard
