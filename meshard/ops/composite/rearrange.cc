#include "meshard/ops/composite/rearrange.h"

#include <algorithm>

#include "meshard/ops/definition/operand.h"
#include "meshard/ops/permute_dims.h"
#include "meshard/ops/reshape.h"

namespace meshard {

Tensor squeeze(In x, DimensionList dimensions) {
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("squeeze", x);
  const Shape& shape = operand.shape();
  Dimensions gone = dimensions.resolve(shape.rank(), "squeeze", where), sizes;
  for (int d = 0; d < shape.rank(); ++d) {
    if (std::find(gone.begin(), gone.end(), d) == gone.end())
      sizes.push_back(shape[d]);
    else if (shape[d] != 1)
      throw_invalid(where, "[squeeze] dimension ", d, " = ", shape[d], " of ", operand.type(),
                    " does not have size 1");
  }
  return reshape(In(operand, where), std::move(sizes));
}

Tensor squeeze(In x) {
  Tensor operand = operand_tensor("squeeze", x);
  Dimensions sizes;
  for (std::int64_t size : operand.shape())
    if (size != 1) sizes.push_back(size);
  return reshape(In(operand, x.where), std::move(sizes));
}

Tensor expand_dims(In x, std::int64_t dimension) {
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("expand_dims", x);
  Dimensions sizes = operand.shape().sizes();
  int at = normalize_dimension(dimension, operand.shape().rank() + 1, "expand_dims", where);
  sizes.insert(sizes.begin() + at, 1);
  return reshape(In(operand, where), std::move(sizes));
}

Tensor flatten(In x) {
  Tensor operand = operand_tensor("flatten", x);
  return reshape(In(operand, x.where), {operand.size()});
}

Tensor swapaxes(In x, std::int64_t a, std::int64_t b) {
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("swapaxes", x);
  int rank = operand.shape().rank();
  Dimensions order;
  for (int d = 0; d < rank; ++d) order.push_back(d);
  std::swap(order[static_cast<std::size_t>(normalize_dimension(a, rank, "swapaxes", where))],
            order[static_cast<std::size_t>(normalize_dimension(b, rank, "swapaxes", where))]);
  return permute_dims(In(operand, where), std::move(order));
}

Tensor moveaxis(In x, Dimensions source, Dimensions destination) {
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("moveaxis", x);
  int rank = operand.shape().rank();
  if (source.size() != destination.size())
    throw_invalid(where, "[moveaxis] ", source.size(), " sources for ", destination.size(),
                  " destinations: give one source for each destination");
  // -1 marks a dimension of the result to which nothing was moved.
  Dimensions order(static_cast<std::size_t>(rank), -1), moved;
  for (std::size_t i = 0; i < source.size(); ++i) {
    int from = normalize_dimension(source[i], rank, "moveaxis", where);
    int to = normalize_dimension(destination[i], rank, "moveaxis", where);
    std::int64_t& place = order[static_cast<std::size_t>(to)];
    if (place != -1 || std::find(moved.begin(), moved.end(), from) != moved.end())
      throw_invalid(where, "[moveaxis] a dimension is named twice: from [", join(source, ", "),
                    "] to [", join(destination, ", "), "]");
    place = from;
    moved.push_back(from);
  }
  std::int64_t next = 0;
  for (std::int64_t& place : order) {
    if (place != -1) continue;
    while (std::find(moved.begin(), moved.end(), next) != moved.end()) ++next;
    place = next++;
  }
  return permute_dims(In(operand, where), std::move(order));
}

Tensor moveaxis(In x, std::int64_t source, std::int64_t destination) {
  return moveaxis(x, Dimensions{source}, Dimensions{destination});
}

}  // namespace meshard
