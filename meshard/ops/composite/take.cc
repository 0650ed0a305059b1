#include "meshard/ops/composite/take.h"

#include "meshard/ops/broadcast_in_dim.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/gather.h"
#include "meshard/ops/internal/known_indices.h"

namespace meshard {
namespace {

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
  at = internal::indices_from_start(at, operand.shape()[along], "take", where);
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
  at = internal::indices_from_start(at, operand.shape()[along], "take_along_axis", where);
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

}  // namespace meshard
