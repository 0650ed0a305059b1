#include "meshard/ops/composite/stack.h"

#include "meshard/ops/composite/rearrange.h"
#include "meshard/ops/concat.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/slice.h"

namespace meshard {

Tensor stack(const std::vector<Tensor>& tensors, std::int64_t dimension, SourceLocation where) {
  SourceScope line(where);
  where = effective_source(where);
  if (tensors.empty()) throw_invalid(where, "[stack] takes at least one tensor");
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Tensor part = operand_tensor("stack", In(tensors[i], where));
    if (part.shape() != tensors[0].shape())
      throw_invalid(where, "[stack] shapes differ: tensor 0 is ", tensors[0].type(), ", tensor ", i,
                    " is ", part.type());
    parts.push_back(expand_dims(part, dimension));
  }
  return concat(parts, dimension, where);
}

std::vector<Tensor> unstack(In x, std::int64_t dimension) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("unstack", x);
  int along = normalize_dimension(dimension, operand.shape().rank(), "unstack", where);
  Dimensions ones(static_cast<std::size_t>(operand.shape()[along]), 1);
  std::vector<Tensor> slices = split_sizes(operand, std::move(ones), along);
  for (Tensor& each : slices) each = squeeze(each, along);
  return slices;
}

std::vector<Tensor> split_sizes(In x, Dimensions sizes, std::int64_t dimension) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("split_sizes", x);
  const Shape& shape = operand.shape();
  auto along =
      static_cast<std::size_t>(normalize_dimension(dimension, shape.rank(), "split_sizes", where));
  std::int64_t total = 0;
  for (std::int64_t size : sizes) {
    if (size < 0) throw_invalid(where, "[split_sizes] size ", size, " is negative");
    total += size;
  }
  if (total != shape.sizes()[along])
    throw_invalid(where, "[split_sizes] sizes [", join(sizes, ", "), "] add up to ", total,
                  ", but dimension ", along, " of ", operand.type(), " is ", shape.sizes()[along]);
  std::vector<Tensor> parts;
  Dimensions start(static_cast<std::size_t>(shape.rank()), 0), stop = shape.sizes();
  for (std::int64_t size : sizes) {
    stop[along] = start[along] + size;
    parts.push_back(slice(operand, start, stop));
    start[along] = stop[along];
  }
  return parts;
}

std::vector<Tensor> split(In x, std::int64_t count, std::int64_t dimension) {
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("split", x);
  int along = normalize_dimension(dimension, operand.shape().rank(), "split", where);
  std::int64_t size = operand.shape()[along];
  if (count < 1 || size % count != 0)
    throw_invalid(where, "[split] dimension ", along, " = ", size, " of ", operand.type(),
                  " cannot be cut into ", count, " equal parts");
  return split_sizes(In(operand, where), Dimensions(static_cast<std::size_t>(count), size / count),
                     along);
}

}  // namespace meshard
