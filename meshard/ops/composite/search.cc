#include "meshard/ops/composite/search.h"

#include <bit>
#include <limits>
#include <vector>

#include "meshard/ops/all.h"
#include "meshard/ops/definition/operand.h"

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

namespace {

// The sorted elements, and their original indices.
std::vector<Tensor> with_places(const Tensor& x, std::int64_t dimension, bool descending,
                                SourceLocation where) {
  bool fits = x.shape()[static_cast<int>(dimension)] <= std::numeric_limits<std::int32_t>::max();
  Tensor places = iota(fits ? DType::i32 : DType::i64, x.shape(), dimension);
  return sort({x, places}, dimension, descending, 1, where);
}

}  // namespace

Tensor argsort(In x, std::int64_t dimension, bool descending) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("argsort", x);
  dimension = normalize_dimension(dimension, operand.shape().rank(), "argsort", where);
  return with_places(operand, dimension, descending, where)[1];
}

TopK top_k(In x, std::int64_t k, std::int64_t dimension) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("top_k", x);
  dimension = normalize_dimension(dimension, operand.shape().rank(), "top_k", where);
  std::int64_t size = operand.shape()[dimension];
  if (k < 0 || k > size)
    throw_invalid(where, "[top_k] k = ", k, " is outside 0..", size, ", the size of dimension ",
                  dimension, " of ", operand.type());
  std::vector<Tensor> sorted = with_places(operand, dimension, true, where);
  return {slice_along(sorted[0], dimension, 0, k), slice_along(sorted[1], dimension, 0, k)};
}

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

namespace {

// Elements `first` to `last` - 1 of a vector.
Tensor elements_between(const Tensor& x, std::int64_t first, std::int64_t last) {
  return slice(x, {first}, {last});
}

}  // namespace

Unique unique_all(In x, std::int64_t size) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("unique", x), flat = flatten(operand);
  std::int64_t n = flat.dim(0);
  if (size < 0) throw_invalid(where, "[unique] size = ", size, " is negative");
  if (n == 0 || n > std::numeric_limits<std::int32_t>::max())
    throw_invalid(where, "[unique] takes 1 to 2^31 - 1 elements, not ", operand.type());
  std::vector<Tensor> sorted = sort({flat, iota(DType::i32, Shape{n}, 0)});
  // The number of each sorted element's value: a running count of the places where a new value
  // begins.
  Tensor begins =
      not_equal(elements_between(sorted[0], 1, n), elements_between(sorted[0], 0, n - 1));
  Tensor numbers = cumulative_sum(concat({zeros({1}, DType::i32), astype(begins, DType::i32)}));
  Tensor starts = searchsorted(numbers, iota(DType::i32, Shape{size + 1}, 0));
  Tensor first = elements_between(starts, 0, size);
  return {.values = take(sorted[0], first),
          .indices = take(sorted[1], first),
          .inverse_indices = reshape(take(numbers, argsort(sorted[1])), operand.shape()),
          .counts = subtract(elements_between(starts, 1, size + 1), first),
          .number = add(reshape(elements_between(numbers, n - 1, n), Shape{}), 1)};
}

Tensor unique_values(In x, std::int64_t size) { return unique_all(x, size).values; }

UniqueCounts unique_counts(In x, std::int64_t size) {
  Unique all = unique_all(x, size);
  return {all.values, all.counts};
}

UniqueInverse unique_inverse(In x, std::int64_t size) {
  Unique all = unique_all(x, size);
  return {all.values, all.inverse_indices};
}

}  // namespace meshard
