#include "meshard/ops/composite/argmax.h"

#include <limits>

#include "meshard/ops/astype.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/composite/rearrange.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/iota.h"
#include "meshard/ops/reduction.h"
#include "meshard/ops/reshape.h"
#include "meshard/ops/where.h"

namespace meshard {
namespace {

// The index of the first element that equals the result of `extreme`.
Tensor first_of(std::string_view name, Tensor (*extreme)(In, DimensionList, bool), const In& x,
                std::optional<std::int64_t> dimension, bool keepdims) {
  SourceScope line(x.where);
  SourceLocation place = effective_source(x.where);
  Tensor operand = operand_tensor(name, x);
  if (operand.dtype() == DType::bool_) operand = astype(operand, DType::i32);
  int rank = operand.shape().rank();
  if (!dimension) operand = flatten(operand);
  int along = dimension ? normalize_dimension(*dimension, operand.shape().rank(), name, place) : 0;
  std::int64_t size = operand.shape()[along];
  if (size == 0)
    throw_invalid(place, "[", name, "] cannot reduce an empty dimension: dimension ", along, " of ",
                  operand.type(), " is empty");
  Tensor found = equal(operand, extreme(operand, along, true));
  if (is_floating(operand.dtype())) {
    // NaN is tested separately: compilers differ in the minimum of NaN.
    Tensor is_nan = not_equal(operand, operand);
    found = where(any(is_nan, along, true), is_nan, found);
  }
  DType dtype = size <= std::numeric_limits<std::int32_t>::max() ? DType::i32 : DType::i64;
  Tensor index = min(where(found, iota(dtype, operand.shape(), along), size), along, keepdims);
  if (keepdims && !dimension) return reshape(index, Dimensions(static_cast<std::size_t>(rank), 1));
  return index;
}

}  // namespace

Tensor argmax(In x, std::optional<std::int64_t> dimension, bool keepdims) {
  return first_of("argmax", max, x, dimension, keepdims);
}

Tensor argmin(In x, std::optional<std::int64_t> dimension, bool keepdims) {
  return first_of("argmin", min, x, dimension, keepdims);
}

}  // namespace meshard
