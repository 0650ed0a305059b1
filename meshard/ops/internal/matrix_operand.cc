// Tested in meshard/ops/triangular_solve_test.cc.
#include "meshard/ops/internal/matrix_operand.h"

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
  auto batch_of = [](const Tensor& x) {
    return zeros(Shape(Dimensions(x.shape().begin(), x.shape().end() - 2)), DType::bool_);
  };
  // Broadcasts the batch shapes only, without elements of the matrices.
  Shape batch = equal(batch_of(a), batch_of(b)).shape();
  auto with_batch = [&](const Tensor& x) {
    Dimensions sizes = batch.sizes();
    for (int d = x.rank() - 2; d < x.rank(); ++d) sizes.push_back(x.dim(d));
    return broadcast_to(x, Shape(std::move(sizes)));
  };
  return {with_batch(a), with_batch(b)};
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
