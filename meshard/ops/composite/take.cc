#include "meshard/ops/composite/take.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/graph/storage.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/definition/op_table.h"

namespace meshard {
namespace {

std::optional<HostArray> known_elements(Value value) {
  while (value) {
    const Storage* storage = value.storage();
    if (storage)
      return storage->kind() == Storage::Kind::kHost
                 ? std::optional(storage->to_host(SourceLocation{}))
                 : std::nullopt;
    const OpDef& op = value->op();
    if (&op == &constant_op) return value->attributes_as<ConstantAttributes>().value;
    if (&op != &reshape_op && !op.traits.repeats_elements) return std::nullopt;
    value = Value(value->operands()[0]);
  }
  return std::nullopt;
}

// The smallest and the largest element of integers whose values are known now: a constant, a value
// in host memory, or one of these reshaped or repeated. Empty for others, and for no elements.
std::optional<std::pair<std::int64_t, std::int64_t>> known_range(const Tensor& integers) {
  if (!is_integer(integers.dtype()) || integers.size() == 0) return std::nullopt;
  std::optional<HostArray> known = known_elements(integers.value());
  if (!known || known->size() == 0) return std::nullopt;
  if (known->dtype() == DType::u64) {  // beyond i64 is out of range of any dimension
    auto [low, high] = std::ranges::minmax(known->data<std::uint64_t>());
    constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
    return std::pair(static_cast<std::int64_t>(std::min(low, kMost)),
                     static_cast<std::int64_t>(std::min(high, kMost)));
  }
  const HostArray wide = known->astype(DType::i64);
  auto [low, high] = std::ranges::minmax(wide.data<std::int64_t>());
  return std::pair(low, high);
}

// Indices that count from the beginning of a dimension: those that count from its end get its size
// added.
// @error out of range: a known index is outside of -size..size-1
Tensor indices_from_start(const Tensor& indices, std::int64_t size, std::string_view op,
                          SourceLocation where) {
  if (!is_integer(indices.dtype())) return indices;  // the op refuses it
  if (std::optional<std::pair<std::int64_t, std::int64_t>> range = known_range(indices)) {
    const std::int64_t wrong = range->first < -size ? range->first : range->second;
    if (wrong < -size || wrong >= size)
      throw Error(ErrorCode::kOutOfRange,
                  cat("[", op, "] the index ", wrong, " is outside a dimension of size ", size,
                      ": indices are from ", -size, " to ", size - 1),
                  where);
    if (range->first >= 0) return indices;
  }
  if (!is_signed_integer(indices.dtype())) return indices;
  // In a narrow dtype, the sum may not fit.
  const bool is_large = size > std::numeric_limits<std::int32_t>::max();
  const DType least = is_large ? DType::i64 : DType::i32;
  Tensor wide =
      size_in_bytes(indices.dtype()) < size_in_bytes(least) ? astype(indices, least) : indices;
  return meshard::where(less(wide, 0), add(wide, size), wide);
}

void check_not_empty(std::string_view name, const Tensor& x, int along, SourceLocation where) {
  if (x.shape()[along] == 0)
    throw_invalid(where, "[", name, "] dimension ", along, " of ", x.type(),
                  " is empty, so every index is out of range");
}

}  // namespace

Tensor take(In x, In indices, std::int64_t dimension) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("take", x), at = operand_tensor("take", indices);
  int rank = operand.shape().rank(), index_rank = at.shape().rank();
  int along = normalize_dimension(dimension, rank, "take", where);
  check_not_empty("take", operand, along, where);
  at = indices_from_start(at, operand.shape()[along], "take", where);
  GatherDimensions dims{
      .collapsed_slice_dims = {along}, .start_index_map = {along}, .index_vector_dim = index_rank};
  for (int d = 0; d < rank; ++d)
    if (d != along) dims.offset_dims.push_back(d < along ? d : d - 1 + index_rank);
  return gather(operand, at, std::move(dims), operand.shape().with(along, 1).sizes());
}

Tensor take_along_axis(In x, In indices, std::int64_t dimension) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("take_along_axis", x);
  Tensor at = operand_tensor("take_along_axis", indices);
  int rank = operand.shape().rank();
  if (at.shape().rank() != rank)
    throw_invalid(where, "[take_along_axis] ranks differ: x is ", operand.type(), ", indices are ",
                  at.type());
  int along = normalize_dimension(dimension, rank, "take_along_axis", where);
  check_not_empty("take_along_axis", operand, along, where);
  at = indices_from_start(at, operand.shape()[along], "take_along_axis", where);
  Dimensions from = operand.shape().sizes(), to = at.shape().sizes();
  GatherDimensions dims{
      .collapsed_slice_dims = {along}, .start_index_map = {along}, .index_vector_dim = rank};
  for (int d = 0; d < rank; ++d) {
    auto i = static_cast<std::size_t>(d);
    if (d == along) continue;
    if (from[i] != to[i] && from[i] != 1 && to[i] != 1)
      throw_invalid(where, "[take_along_axis] sizes do not broadcast: x ", operand.type(),
                    " dimension ", d, " = ", from[i], ", indices ", at.type(), " dimension ", d,
                    " = ", to[i]);
    from[i] = to[i] = from[i] == 1 ? to[i] : from[i];
    dims.operand_batching_dims.push_back(d);
    dims.start_indices_batching_dims.push_back(d);
  }
  operand = broadcast_to(operand, Shape(from));
  // For an empty dimension a slice size of 1 would be too large; there are no elements to take.
  Dimensions slice_sizes;
  for (std::int64_t size : from) slice_sizes.push_back(size == 0 ? 0 : 1);
  return gather(operand, broadcast_to(at, Shape(to)), std::move(dims), std::move(slice_sizes));
}

Tensor one_hot(In indices, std::int64_t classes, DType dtype) {
  SourceScope line(indices.where);
  Tensor index = operand_tensor("one_hot", indices);
  if (!is_integer(index.dtype()))
    throw_invalid(effective_source(indices.where), "[one_hot] indices must be integers, not ",
                  index.type());
  if (classes < 0)
    throw_invalid(effective_source(indices.where), "[one_hot] classes = ", classes, " is negative");
  // Compares in i32 or wider: iota in a narrow dtype could not represent every class.
  if (size_in_bytes(index.dtype()) < size_in_bytes(kDefaultInteger))
    index = astype(index, kDefaultInteger);
  Dimensions column = index.shape().sizes();
  column.push_back(1);
  Tensor row = iota(index.dtype(), Shape{classes}, 0);
  return astype(equal(reshape(index, column), row), dtype);
}

}  // namespace meshard
