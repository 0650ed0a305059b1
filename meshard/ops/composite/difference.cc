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
    std::int64_t size = result.shape()[along];
    Tensor later = slice_along(result, along, std::min<std::int64_t>(1, size), size);
    Tensor earlier = slice_along(result, along, 0, std::max<std::int64_t>(0, size - 1));
    result = result.dtype() == DType::bool_ ? not_equal(later, earlier) : subtract(later, earlier);
  }
  return result;
}

}  // namespace meshard
