#include "meshard/ops/cholesky.h"

#include "meshard/ops/add.h"
#include "meshard/ops/astype.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/complex.h"
#include "meshard/ops/composite/create.h"
#include "meshard/ops/composite/matmul.h"
#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/imag.h"
#include "meshard/ops/internal/matrix_operand.h"
#include "meshard/ops/iota.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/real.h"
#include "meshard/ops/triangular_solve.h"
#include "meshard/ops/where.h"

namespace meshard {
using namespace internal;
namespace {

// The lower triangle, with the diagonal halved.
Tensor half_lower(const Tensor& x) {
  Shape matrix{x.shape()[-2], x.shape()[-1]};
  Tensor diagonal = equal(iota(DType::i32, matrix, 0), iota(DType::i32, matrix, 1));
  return tril(where(diagonal, multiply(x, element_wise::literal(0.5, x)), x));
}

// I. Murray, Differentiation of the Cholesky decomposition (2016), equation 10, for a function of
// the lower triangle only. For complex numbers it gives the conjugate of JAX's convention.
void cholesky_vjp(const VjpCall& call, std::span<Tensor> out) {
  const Tensor& l = call.results[0];
  Tensor lower = tril(l), cotangent = tril(conjugated(call.cotangents[0]));
  Tensor inner = half_lower(matmul(adjoint(lower), cotangent));
  TriangularSolveOptions from_left{.transpose = TransposeKind::kAdjoint};
  TriangularSolveOptions from_right{.left_side = false};
  Tensor s = triangular_solve(lower, triangular_solve(lower, inner, from_left), from_right);
  out[0] = conjugated(half_lower(add(s, adjoint(s))));
}

std::vector<OpSample> cholesky_samples(SampleSource& source) {
  // x adjoint(x) + 2 is positive definite.
  auto of_product = [](bool upper) {
    return [=](std::span<const Tensor> x) {
      Tensor unit = eye(x[0].shape()[-1], std::nullopt, 0, x[0].dtype());
      return cholesky(add(matmul(x[0], adjoint(x[0])), multiply(unit, 2)), upper);
    };
  };
  auto of_complex = [](std::span<const Tensor> x) {
    Tensor z = complex(x[0], x[1]);
    Tensor unit = eye(4, std::nullopt, 0, DType::c128);
    Tensor l = cholesky(add(matmul(z, adjoint(z)), multiply(unit, 2)));
    return add(real(l), multiply(imag(l), 3));
  };
  DType f32 = DType::f32, f64 = DType::f64;
  return {
      {"matrix", {source.uniform(f64, {4, 4})}, of_product(false)},
      {"stack, upper", {source.uniform(f64, {4, 3, 3})}, of_product(true)},
      {"two stacks", {source.uniform(f32, {4, 2, 5, 5})}, of_product(false)},
      {"one", {source.uniform(f64, {1, 1})}, of_product(false)},
      {"c64", {source.uniform(DType::c64, {2, 4, 4})}, of_product(false)},
      {"c128", {source.uniform(f64, {4, 4}), source.uniform(f64, {4, 4})}, of_complex},
  };
}

}  // namespace

extern constinit const OpDef cholesky_op = {
    .name = "cholesky",
    .operands = "x",
    .doc = "The lower triangular factors of symmetric positive definite matrices.",
    .example = "cholesky(matmul(x, permute_dims(x)))",
    .infer =
        [](const OpCall& call, ResultTypes& results) {
          check_matrix(call, call.operand(0), true);
          results.push_back(call.operand(0));
        },
    .sharding_rule =
        [](const OpCall& call) {
          ShardingRuleBuilder builder;
          auto factors = factors_with_whole_last(builder, call.operand(0).shape, 2);
          return builder.operand(one_factor_each(factors)).result(one_factor_each(factors)).build();
        },
    .emit = [](const OpCall&,
               OpEmission& out) { out.op("stablehlo.cholesky").boolean("lower", true).done(); },
    .vjp = cholesky_vjp,
    .batch = batch_unchanged,
    .samples = cholesky_samples,
};

Tensor cholesky(In x, bool upper) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor(cholesky_op, x);
  DType dtype = operand.dtype();
  if (!is_complex(dtype)) operand = astype(operand, dtype == DType::f64 ? dtype : kDefaultFloat);
  if (operand.shape().rank() < 2 || operand.shape()[-1] != operand.shape()[-2])
    throw_invalid(where, "[cholesky] takes square matrices in the last two dimensions, not ",
                  operand.type());
  Tensor half = element_wise::literal(0.5, operand);
  Tensor symmetric = multiply(add(operand, adjoint(operand)), half);
  Tensor lower = tril(record(cholesky_op, nullptr, {&symmetric}, where));
  if (is_floating(dtype)) lower = astype(lower, dtype);
  return upper ? adjoint(lower) : lower;
}

}  // namespace meshard
