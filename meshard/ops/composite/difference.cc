#include "meshard/ops/composite/difference.h"

#include <algorithm>
#include <vector>

#include "meshard/ops/arithmetic.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/movement.h"
#include "meshard/ops/slicing.h"

namespace meshard {

Tensor diff(In x, std::int64_t dimension, std::int64_t n, Tensor prepend, Tensor append) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  Tensor result = operand_tensor("diff", x);
  int along = normalize_dimension(dimension, result.shape().rank(), "diff", where);
  if (n < 0) throw_invalid(where, "[diff] n = ", n, " is negative");
  std::vector<Tensor> parts;
  if (prepend.defined()) parts.push_back(prepend);
  parts.push_back(result);
  if (append.defined()) parts.push_back(append);
  if (parts.size() > 1) result = concat(parts, along, where);
  for (std::int64_t i = 0; i < n; ++i) {
    auto d = static_cast<std::size_t>(along);
    Dimensions start(static_cast<std::size_t>(result.rank()), 0), stop = result.shape().sizes();
    Dimensions first = start;
    start[d] = std::min<std::int64_t>(1, stop[d]);
    Tensor later = slice(result, start, stop);
    stop[d] = std::max<std::int64_t>(0, stop[d] - 1);
    Tensor earlier = slice(result, first, stop);
    result = result.dtype() == DType::bool_ ? not_equal(later, earlier) : subtract(later, earlier);
  }
  return result;
}

}  // namespace meshard
