#include "meshard/ops/composite/matmul.h"

#include <algorithm>

#include "meshard/ops/all.h"
#include "meshard/ops/composite/internal/contraction.h"
#include "meshard/ops/definition/operand.h"

namespace meshard {
using namespace internal;
namespace {

// Labels: batch dimensions are 0, 1, ... from the right; the matrix dimensions are these negative
// ones.
constexpr int kRows = -1, kInner = -2, kColumns = -3;

}  // namespace

Tensor matmul(In a, In b, std::optional<Sharding> result_sharding) {
  SourceScope line(a.where);
  SourceLocation where = effective_source(a.where);
  Labeled lhs{operand_tensor("matmul", a), {}}, rhs{operand_tensor("matmul", b), {}};
  int left = lhs.tensor.shape().rank(), right = rhs.tensor.shape().rank();
  if (left == 0 || right == 0)
    throw_invalid(where, "[matmul] does not support scalars: lhs ", lhs.tensor.type(), ", rhs ",
                  rhs.tensor.type());
  std::int64_t inner = lhs.tensor.shape()[-1], from = rhs.tensor.shape()[right == 1 ? 0 : -2];
  // The contracted dimension of size 1 does not broadcast, unlike the batch dimensions.
  if (inner != from)
    throw_invalid(where, "[matmul] inner sizes differ: lhs ", lhs.tensor.type(), " dimension ",
                  left - 1, " = ", inner, ", rhs ", rhs.tensor.type(), " dimension ",
                  right == 1 ? 0 : right - 2, " = ", from);
  for (int d = 0; d < left - 2; ++d) lhs.labels.push_back(left - 3 - d);
  if (left > 1) lhs.labels.push_back(kRows);
  lhs.labels.push_back(kInner);
  for (int d = 0; d < right - 2; ++d) rhs.labels.push_back(right - 3 - d);
  rhs.labels.push_back(kInner);
  if (right > 1) rhs.labels.push_back(kColumns);
  Labels result;
  for (int d = std::max(left, right) - 2; d-- > 0;) result.push_back(d);
  if (left > 1) result.push_back(kRows);
  if (right > 1) result.push_back(kColumns);
  return ordered(contract("matmul", std::move(lhs), std::move(rhs), result, where, result_sharding),
                 result);
}

Tensor tensordot(In a, In b, Dimensions a_dimensions, Dimensions b_dimensions) {
  return dot_general(
      a, b,
      {.lhs_contracting = std::move(a_dimensions), .rhs_contracting = std::move(b_dimensions)});
}

Tensor tensordot(In a, In b, std::int64_t count) {
  SourceLocation where = effective_source(a.where);
  int left = operand_tensor("tensordot", a).shape().rank();
  int right = operand_tensor("tensordot", b).shape().rank();
  if (count < 0 || count > left || count > right)
    throw_invalid(where, "[tensordot] ", count, " dimensions cannot be summed: lhs has rank ", left,
                  ", and rhs ", right);
  Dimensions from_a, from_b;
  for (std::int64_t i = 0; i < count; ++i) {
    from_a.push_back(left - count + i);
    from_b.push_back(i);
  }
  return tensordot(a, b, std::move(from_a), std::move(from_b));
}

Tensor outer(In a, In b) {
  Tensor lhs = operand_tensor("outer", a), rhs = operand_tensor("outer", b);
  if (lhs.shape().rank() != 1 || rhs.shape().rank() != 1)
    throw_invalid(effective_source(a.where), "[outer] takes vectors, not ", lhs.type(), " and ",
                  rhs.type());
  return dot_general(a, b, {});
}

Tensor linear(In x, In weight) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  Tensor input = operand_tensor("linear", x), matrix = operand_tensor("linear", weight);
  if (input.rank() == 0 || matrix.rank() != 2 || input.shape()[-1] != matrix.shape()[1])
    throw_invalid(where, "[linear] takes x [..., in] and a weight [out, in], not ", input.type(),
                  " and ", matrix.type());
  return dot_general(input, matrix, {.lhs_contracting = {-1}, .rhs_contracting = {1}});
}

Tensor linear(In x, In weight, In bias) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  Tensor product = linear(x, weight), offset = operand_tensor("linear", bias);
  if (offset.rank() != 1 || offset.shape()[0] != product.shape()[-1])
    throw_invalid(where, "[linear] takes a bias [out] for out = ", product.shape()[-1], ", not ",
                  offset.type());
  return add(product, offset);
}

}  // namespace meshard
