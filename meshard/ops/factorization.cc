#include "meshard/ops/factorization.h"

#include <algorithm>
#include <cmath>

#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/internal/element_writer.h"
#include "meshard/ops/internal/matrix_operand.h"

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
          int rank = call.operand(0).rank();
          return one_shape_rule(call, [=](int d) {
            return d < rank - 2 ? FactorKind::kPassThrough : FactorKind::kNeedReplication;
          });
        },
    .emit = [](const OpCall&,
               OpEmission& out) { out.op("stablehlo.cholesky").boolean("lower", true).done(); },
    .read = {.mnemonic = "stablehlo.cholesky"},
    .vjp = cholesky_vjp,
    .batch = batch_unchanged,
};

Tensor cholesky(In x, bool upper) {
  SourceScope line(x.where);
  Tensor given = square_matrices("cholesky", x), operand = for_factors(given);
  Tensor half = element_wise::literal(0.5, operand);
  Tensor symmetric = multiply(add(operand, adjoint(operand)), half);
  Tensor lower = tril(record(cholesky_op, nullptr, {&symmetric}, x.where));
  lower = from_factors(lower, given.dtype());
  return upper ? adjoint(lower) : lower;
}

namespace {

void infer_eigh(const OpCall& call, ResultTypes& results) {
  const TensorType& x = call.operand(0);
  check_matrix(call, x, true);
  if (is_complex(x.dtype)) call.fail("takes f32 and f64, not ", x);
  if (x.shape[-1] == 0) call.fail("takes non-empty matrices, not ", x);
  Dimensions sizes(x.shape.begin(), x.shape.end() - 1);
  results.push_back({x.dtype, Shape(std::move(sizes))});
  results.push_back(x);
}

// The partitioner cannot split the custom call: every dimension is needed whole.
ShardingRule eigh_rule(const OpCall& call) {
  ShardingRuleBuilder builder;
  TensorFactors factors = own_factors(builder, call.operand(0).shape, FactorKind::kNeedReplication);
  TensorFactors values(factors.begin(), factors.end() - 1);
  return builder.operand(factors).result(std::move(values)).result(factors).build();
}

// XLA expands the custom call `Eigh`. Its configuration: read the lower triangle, sort the
// eigenvalues, the maximum number of sweeps, and the tolerance for off-diagonal elements.
void emit_eigh(const OpCall& call, OpEmission& out) {
  bool wide = call.operand(0).dtype == DType::f64;
  stablehlo::Value vectors = out.results[1].value, values = out.results[0].value;
  out.writer
      .custom_call("Eigh", {{vectors, call.result(1)}, {values, call.result(0)}}, out.operands,
                   out.location)
      .string("backend_config", wide ? "1,1,100,1e-13" : "1,1,100,1e-6")
      .done();
}

// The derivative for symmetric matrices: v (diag(dw) + f * (v^T dv)) v^T with f[i, j] = 1 / (w[j] -
// w[i]) off the diagonal (M. Giles, Collected matrix derivative results, 2008, section 3.1).
void eigh_vjp(const VjpCall& call, std::span<Tensor> out) {
  const Tensor &w = call.results[0], &v = call.results[1];
  const Tensor &dw = call.cotangents[0], &dv = call.cotangents[1];
  const Shape& shape = call.operands[0].shape();
  Shape matrix{shape[-1], shape[-1]};
  Tensor diagonal = equal(iota(DType::i32, matrix, 0), iota(DType::i32, matrix, 1));
  Tensor inner;
  if (dw.defined()) inner = where(diagonal, expand_dims(dw, -1), 0);
  if (dv.defined()) {
    Tensor gaps = expand_dims(w, -2) - expand_dims(w, -1);
    Tensor turned = where(diagonal, 0, matmul(transposed(v), dv) / where(diagonal, 1, gaps));
    inner = inner.defined() ? inner + turned : turned;
  }
  if (!inner.defined()) return;
  Tensor whole = matmul(matmul(v, inner), transposed(v));
  Tensor half = element_wise::literal(0.5, whole);
  // The op reads only the operand's lower triangle, which therefore receives the cotangents of
  // both.
  Tensor both = (whole + transposed(whole)) * half;
  out[0] = tril(both) + tril(both, -1);
}

}  // namespace

extern constinit const OpDef eigh_op = {
    .name = "eigh",
    .operands = "x",
    .doc = "The eigenvalues and eigenvectors of symmetric matrices.",
    .example = "eigh(matmul(x, permute_dims(x))).eigenvalues",
    .infer = infer_eigh,
    .sharding_rule = eigh_rule,
    .emit = emit_eigh,
    .vjp = eigh_vjp,
    .batch = batch_unchanged,
};

Eigh eigh(In x) {
  SourceScope line(x.where);
  Tensor given = operand_tensor(eigh_op, x);
  if (is_complex(given.dtype()))
    throw_invalid(effective_source(x.where), "[eigh] takes real numbers, not ", given.type());
  Tensor operand = for_factors(square_matrices("eigh", x));
  Tensor symmetric = (operand + transposed(operand)) * element_wise::literal(0.5, operand);
  std::vector<Tensor> made = record_all(eigh_op, nullptr, {&symmetric, 1}, x.where);
  return {from_factors(made[0], given.dtype()), from_factors(made[1], given.dtype())};
}

Tensor eigvalsh(In x) { return eigh(x).eigenvalues; }

namespace {

Dimensions batch_sizes(const Shape& shape) { return Dimensions(shape.begin(), shape.end() - 2); }

Shape with_matrix(const Shape& shape, std::int64_t rows, std::int64_t columns) {
  Dimensions sizes = batch_sizes(shape);
  sizes.push_back(rows);
  sizes.push_back(columns);
  return Shape(std::move(sizes));
}

void infer_qr(const OpCall& call, ResultTypes& results) {
  const TensorType& x = call.operand(0);
  check_matrix(call, x, false);
  if (is_complex(x.dtype)) call.fail("takes f32 and f64, not ", x);
  std::int64_t rows = x.shape[-2], columns = x.shape[-1], common = std::min(rows, columns);
  if (common == 0) call.fail("takes non-empty matrices, not ", x);
  results.push_back({x.dtype, with_matrix(x.shape, rows, common)});
  results.push_back({x.dtype, with_matrix(x.shape, common, columns)});
  results.push_back({x.dtype, Shape(batch_sizes(x.shape))});
}

using stablehlo::Typed;

// The part at the beginning of each dimension, of the sizes of `to`.
Typed corner(OpEmission& out, Typed x, const TensorType& to) {
  if (*x.type == to) return x;
  Dimensions zeros(static_cast<std::size_t>(to.rank()), 0), ones(zeros.size(), 1);
  Typed part(out.writer.temporary(), to);
  out.writer.op("stablehlo.slice", {part}, {x}, out.location)
      .i64_array("start_indices", zeros)
      .i64_array("limit_indices", to.shape.sizes())
      .i64_array("strides", ones)
      .done();
  return part;
}

void write_upper_triangle(OpEmission& out, Typed result, Typed x) {
  const TensorType& type = *result.type;
  TensorType counts{DType::i32, type.shape};
  Typed row(out.writer.temporary(), counts), column(out.writer.temporary(), counts);
  for (auto [value, dimension] :
       {std::pair{row, type.rank() - 2}, std::pair{column, type.rank() - 1}})
    out.writer.op("stablehlo.iota", {value}, {}, out.location)
        .i64("iota_dimension", dimension)
        .done();
  ElementWriter w(type, out);
  Typed upper = w.compare("LE", row, column), zero = w.number(0);
  out.writer.op("stablehlo.select", {result}, {upper, x, zero}, out.location).done();
}

// The determinant of q: each reflection that is applied changes its sign.
void write_sign(OpEmission& out, Typed result, Typed factors) {
  const TensorType& type = *factors.type;
  ElementWriter w(type, out);
  Typed absent = w.compare("EQ", factors, w.number(0));
  Typed one = w.number(1), minus_one = w.number(-1);
  Typed signs = w.select(absent, one, minus_one);
  TensorType scalar{type.dtype, {}};
  Typed start(out.writer.scalar(type.dtype, 1), scalar);
  stablehlo::OpWriter op =
      out.writer.op("stablehlo.reduce", {result}, {signs, start}, out.location);
  op.i64_array("dimensions", {type.rank() - 1});
  write_reducer(op, out, kMultiply, type.dtype).done();
}

// XLA expands the custom calls `Qr` (into R with the Householder vectors below it, and their
// factors) and `ProductOfElementaryHouseholderReflectors`.
void emit_qr(const OpCall& call, OpEmission& out) {
  const TensorType &x = call.operand(0), &r = call.result(1);
  std::int64_t rows = x.shape[-2], common = r.shape[-2];
  Dimensions sizes = batch_sizes(x.shape);
  sizes.push_back(common);
  TensorType factor_type{x.dtype, Shape(sizes)};
  Typed packed(out.writer.temporary(), x), factors(out.writer.temporary(), factor_type);
  out.writer.custom_call("Qr", {packed, factors}, out.operands, out.location).done();
  write_upper_triangle(out, out.results[1], corner(out, packed, r));
  TensorType vectors{x.dtype, with_matrix(x.shape, rows, common)};
  out.writer
      .custom_call("ProductOfElementaryHouseholderReflectors", {out.results[0]},
                   {corner(out, packed, vectors), factors}, out.location)
      .done();
  write_sign(out, out.results[2], factors);
}

// S. F. Walter and L. Lehmann, Algorithmic differentiation of linear algebra functions (2018), for
// m >= n: (dq + q copyltu(r dr^T - dq^T q)) r^-T, where copyltu mirrors the lower triangle.
// Undefined cotangents are zero; at least one is defined.
Tensor tall_qr_vjp(const Tensor& q, const Tensor& r, const Tensor& dq, const Tensor& dr) {
  Tensor inner;
  if (dr.defined()) inner = matmul(r, transposed(dr));
  if (dq.defined()) {
    Tensor part = matmul(transposed(dq), q);
    inner = inner.defined() ? inner - part : -part;
  }
  Tensor sum = matmul(q, tril(inner) + transposed(tril(inner, -1)));
  if (dq.defined()) sum = add(sum, dq);
  return triangular_solve(
      r, sum, {.left_side = false, .lower = false, .transpose = TransposeKind::kTranspose});
}

// A wide matrix is [a b] with a square: a = q u, and the rest of r is v = q^T b. The cotangent of v
// propagates to b, and through q to a.
void qr_vjp(const VjpCall& call, std::span<Tensor> out) {
  const Tensor &q = call.results[0], &r = call.results[1];
  const Tensor &dq = call.cotangents[0], &dr = call.cotangents[1];
  if (!dq.defined() && !dr.defined()) return;
  const Tensor& x = call.operands[0];
  std::int64_t rows = x.dim(-2), all = x.dim(-1);
  if (rows >= all) {
    bool of_determinant = call.cotangents[2].defined();
    out[0] = tall_qr_vjp(q, of_determinant ? regular_factor(r) : r, dq, dr);
    return;
  }
  Tensor u = slice_along(r, -1, 0, rows), b = slice_along(x, -1, rows, all);
  if (!dr.defined()) {
    out[0] = concat({tall_qr_vjp(q, u, dq, dr), zeros_like(b)}, -1);
    return;
  }
  Tensor dv = slice_along(dr, -1, rows, all), through_v = matmul(b, transposed(dv));
  Tensor all_dq = dq.defined() ? add(dq, through_v) : through_v;
  out[0] = concat({tall_qr_vjp(q, u, all_dq, slice_along(dr, -1, 0, rows)), matmul(q, dv)}, -1);
}

}  // namespace

extern constinit const OpDef qr_op = {
    .name = "qr",
    .operands = "x",
    .doc = "The reduced QR factors of matrices, and the determinant of the orthogonal factor.",
    .example = "qr(x).r",
    .infer = infer_qr,
    // The partitioner cannot split the custom call.
    .sharding_rule = whole_rule,
    .emit = emit_qr,
    .vjp = qr_vjp,
    .batch = batch_unchanged,
};

Tensor regular_factor(const Tensor& r) {
  Tensor fixed = stop_gradient(r), size = max(abs(fixed), {-2, -1}, true);
  double epsilon = std::ldexp(1.0, r.dtype() == DType::f64 ? -52 : -23);
  Tensor least = where(equal(size, 0), 1, size) * element_wise::literal(epsilon, r);
  Tensor on_diagonal = eye(r.dim(-2), r.dim(-1), 0, DType::bool_);
  return r + where(logical_and(on_diagonal, equal(fixed, 0)), least, 0);
}

SignedQr signed_qr(In x) {
  SourceScope line(x.where);
  Tensor given = operand_tensor(qr_op, x), operand = for_factors(given);
  std::vector<Tensor> made = record_all(qr_op, nullptr, {&operand, 1}, x.where);
  for (Tensor& each : made) each = from_factors(each, given.dtype());
  return {made[0], made[1], made[2]};
}

Qr qr(In x) {
  SignedQr factors = signed_qr(x);
  return {factors.q, factors.r};
}

}  // namespace meshard
