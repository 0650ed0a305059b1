#include "meshard/ops/composite/order.h"

#include <limits>

#include "meshard/ops/definition/operand.h"
#include "meshard/ops/iota.h"
#include "meshard/ops/slice.h"
#include "meshard/ops/sort.h"

namespace meshard {
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
  auto along = static_cast<std::size_t>(dimension);
  Dimensions start(static_cast<std::size_t>(operand.rank()), 0), stop = operand.shape().sizes();
  if (k < 0 || k > stop[along])
    throw_invalid(where, "[top_k] k = ", k, " is outside 0..", stop[along],
                  ", the size of dimension ", dimension, " of ", operand.type());
  stop[along] = k;
  std::vector<Tensor> sorted = with_places(operand, dimension, true, where);
  return {slice(sorted[0], start, stop), slice(sorted[1], start, stop)};
}

}  // namespace meshard
