// Tested in meshard/ops/triangular_solve_test.cc.
#include "meshard/ops/internal/matrix_operand.h"

#include <cmath>
#include <limits>

#include "meshard/graph/record.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"

namespace meshard::internal {
namespace {

ShardingRule batch_rule(const OpCall& call, int own) {
  ShardingRuleBuilder builder;
  InlineVector<int, 6> batch;
  const Shape& first = call.operand(0).shape;
  for (int d = 0; d < first.rank() - own; ++d) batch.push_back(builder.factor(first[d]));
  auto factors = [&](const TensorType& type) {
    TensorFactors made = one_factor_each(batch);
    for (int d = static_cast<int>(made.size()); d < type.rank(); ++d)
      made.push_back({builder.factor(type.shape[d], FactorKind::kNeedReplication)});
    return made;
  };
  for (const TensorType* type : call.operands) builder.operand(factors(*type));
  for (const TensorType* type : call.results) builder.result(factors(*type));
  return builder.build();
}

}  // namespace

Shape batch_then(const Shape& shape, std::initializer_list<std::int64_t> last, int own) {
  Dimensions sizes(shape.begin(), shape.end() - own);
  for (std::int64_t size : last) sizes.push_back(size);
  return Shape(std::move(sizes));
}

double epsilon_of(DType dtype) {
  return std::ldexp(1.0, real_dtype(dtype) == DType::f64 ? -52 : -23);
}

ShardingRule batch_of_matrices_rule(const OpCall& call) { return batch_rule(call, 2); }
ShardingRule batch_of_vectors_rule(const OpCall& call) { return batch_rule(call, 1); }

void check_matrix(const OpCall& call, const TensorType& operand, bool square) {
  bool wide = operand.dtype == DType::f32 || operand.dtype == DType::f64;
  if (!wide && !is_complex(operand.dtype))
    call.fail("takes f32, f64 and complex numbers, not ", operand);
  if (operand.rank() < 2) call.fail("takes matrices in the last two dimensions, not ", operand);
  if (square && operand.shape[-1] != operand.shape[-2])
    call.fail("takes square matrices, not ", operand.shape[-2], " by ", operand.shape[-1], " of ",
              operand);
}

Tensor matrices(std::string_view name, const In& x) {
  Tensor operand = operand_tensor(name, x);
  if (operand.rank() < 2)
    throw_invalid(effective_source(x.where), "[", name, "] takes matrices, not ", operand.type());
  return operand;
}

Tensor square_matrices(std::string_view name, const In& x) {
  Tensor operand = operand_tensor(name, x);
  if (operand.rank() < 2 || operand.shape()[-1] != operand.shape()[-2])
    throw_invalid(effective_source(x.where), "[", name,
                  "] takes square matrices in the last two dimensions, not ", operand.type());
  return operand;
}

Tensor for_factors(const Tensor& x) {
  bool wide = is_complex(x.dtype()) || x.dtype() == DType::f64;
  return wide ? x : astype(x, kDefaultFloat);
}

Tensor from_factors(const Tensor& result, DType dtype) {
  return is_floating(dtype) ? astype(result, dtype) : result;
}

std::pair<Tensor, Tensor> with_common_batch(const Tensor& a, const Tensor& b) {
  auto batch_of = [](const Tensor& x) { return zeros(batch_then(x.shape(), {}), DType::bool_); };
  // Broadcasts the batch shapes only, without elements of the matrices.
  Shape batch = equal(batch_of(a), batch_of(b)).shape();
  auto with_batch = [&](const Tensor& x) {
    Dimensions sizes = batch.sizes();
    for (int d = x.rank() - 2; d < x.rank(); ++d) sizes.push_back(x.dim(d));
    return broadcast_to(x, Shape(std::move(sizes)));
  };
  return {with_batch(a), with_batch(b)};
}

Tensor as_matrices(const Tensor& numbers) { return expand_dims(expand_dims(numbers, -1), -1); }

Tensor unit_matrices(const TensorType& type) {
  return broadcast_to(eye(type.shape[-2], type.shape[-1], 0, type.dtype), type.shape);
}

Tensor or_nan(Tensor ok, const Tensor& x) {
  while (ok.rank() < x.rank()) ok = expand_dims(ok, -1);
  Tensor nan = element_wise::literal(std::numeric_limits<double>::quiet_NaN(),
                                     zeros({}, real_dtype(x.dtype())));
  return where(ok, x, is_complex(x.dtype()) ? complex(nan, nan) : nan);
}

Tensor transposed(const Tensor& x) {
  Dimensions order;
  for (int d = 0; d < x.shape().rank(); ++d) order.push_back(d);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return permute_dims(x, std::move(order));
}

Tensor conjugated(const Tensor& x) { return is_complex(x.dtype()) ? conj(x) : x; }

Tensor adjoint(const Tensor& x) { return conjugated(transposed(x)); }

}  // namespace meshard::internal
