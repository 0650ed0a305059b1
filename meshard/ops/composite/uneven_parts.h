// Parts of dimensions that the devices of a manual region do not divide evenly.
#pragma once
#include <optional>
#include <string_view>
#include <type_traits>
#include <variant>

#include "meshard/array/number.h"
#include "meshard/graph/tensor.h"
#include "meshard/mesh/axis_set.h"
#include "meshard/ops/collectives.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// A value: the elements that are added to parts of an uneven dimension, as a parameter. A number,
/// or a reduction: the element that does not change its result (ReduceKind::kMax: the lowest value
/// of the dtype, negative infinity for floats).
class PadValue {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> PadValue(T number) : value_(Scalar(number)) {}  // NOLINT
  PadValue(ReduceKind reduction) : value_(reduction) {}                            // NOLINT

  /// The element in `dtype`. @error the dtype cannot hold the number; no such element
  HostArray in(DType dtype, SourceLocation where) const;

 private:
  std::variant<Scalar, ReduceKind> value_;
};

/// The number of elements along `dimension` (negative counts from the last) of this device's part
/// that are not padding: an integer of rank 0. The part is an argument of a manual function, or a
/// result of enable_manual_sharding. The last parts are shorter, and may be empty: of 7 elements,
/// four devices have 2, 2, 2 and 1, and eight have 1, ..., 1 and 0. In a nested manual function,
/// the padding of the enclosing one does not count either.
///
/// @code no-run
/// auto mean_of = manual(Mesh({{"x", 4}}), P("x"), P(), [](const Tensor& part) {
///   return all_reduce(sum(part), "x") / all_reduce(valid_size(part, 0), "x");
/// }, {.pad = 0});
/// @endcode
/// @error `part` is a full value, or computed from an argument; no such dimension.
Tensor valid_size(In part, std::int64_t dimension);

}  // namespace meshard

namespace meshard::internal {

/// full_to_shard, with padding. `op` is the name for errors.
/// @error a dimension does not divide evenly and no `pad` is given; as full_to_shard and PadValue
Tensor enter_with_padding(const Tensor& full, const Sharding& sharding, AxisSet own,
                          const std::optional<PadValue>& pad, std::string_view op,
                          SourceLocation where);

}  // namespace meshard::internal
