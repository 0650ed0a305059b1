#include "meshard/ops/composite/search.h"

#include <bit>
#include <limits>

#include "meshard/ops/add.h"
#include "meshard/ops/astype.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/composite/create.h"
#include "meshard/ops/composite/rearrange.h"
#include "meshard/ops/composite/special_values.h"
#include "meshard/ops/composite/take.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/logical.h"
#include "meshard/ops/reduction.h"
#include "meshard/ops/reshape.h"
#include "meshard/ops/subtract.h"
#include "meshard/ops/where.h"

namespace meshard {

Tensor count_nonzero(In x, DimensionList dimensions, bool keepdims) {
  SourceScope line(x.where);
  Tensor operand = operand_tensor("count_nonzero", x);
  Tensor counted = operand.dtype() == DType::bool_ ? operand : not_equal(operand, 0);
  return sum(astype(counted, DType::i32), dimensions, keepdims);
}

Tensor searchsorted(In sorted, In x, SearchSide side, Tensor sorter) {
  SourceScope line(sorted.where);
  SourceLocation place = effective_source(sorted.where);
  Tensor row = operand_tensor("searchsorted", sorted), wanted = operand_tensor("searchsorted", x);
  if (row.rank() != 1 || row.dim(0) > std::numeric_limits<std::int32_t>::max() / 2)
    throw_invalid(place, "[searchsorted] takes a sorted vector of less than 2^30 elements, not ",
                  row.type());
  DType dtype = promote(row.dtype(), wanted.dtype(), place);
  row = astype(row, dtype);
  wanted = astype(wanted, dtype);
  if (sorter.defined()) {
    if (sorter.shape() != row.shape())
      throw_invalid(place, "[searchsorted] sorter ", sorter.type(), " does not have the shape of ",
                    row.type());
    row = take(row, sorter);
  }
  std::int64_t size = row.dim(0);
  // Binary search for the number of elements before x, digit by digit: a digit is set if the
  // element at which the count would end is still before x.
  Tensor count = zeros(wanted.shape(), DType::i32);
  for (std::int64_t digit = size == 0 ? 0 : std::int64_t(std::bit_floor(std::uint64_t(size)));
       digit > 0; digit /= 2) {
    Tensor with = add(count, digit);
    Tensor element = take(row, subtract(with, 1));
    Tensor before = side == SearchSide::kLeft ? less(element, wanted) : less_equal(element, wanted);
    if (is_floating(dtype)) {
      Tensor behind_numbers = isnan(wanted);
      if (side == SearchSide::kLeft)
        behind_numbers = logical_and(behind_numbers, logical_not(isnan(element)));
      before = logical_or(before, behind_numbers);
    }
    count = where(logical_and(less_equal(with, size), before), with, count);
  }
  return count;
}

Tensor isin(In x, In elements, bool invert) {
  SourceScope line(x.where);
  Tensor operand = operand_tensor("isin", x);
  Tensor list = flatten(operand_tensor("isin", elements));
  Tensor found = any(equal(expand_dims(operand, -1), list), -1);
  return invert ? logical_not(found) : found;
}

}  // namespace meshard
