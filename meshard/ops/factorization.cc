#include "meshard/ops/factorization.h"

#include <algorithm>

#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/definition/op_table.h"
#include "meshard/ops/internal/by_lapack.h"
#include "meshard/ops/internal/by_loops.h"
#include "meshard/ops/internal/composition.h"
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

// Inside regions over some of the axes, the partitioner splits batches of the op, but not of a
// call.
void emit_cholesky(const OpCall& call, OpEmission& out) {
  if (out.quirks.has(Quirk::kLapackCalls) && !out.partitioned && call.operand(0).shape.size() > 0)
    emit_composition(call, out, [](std::span<const Tensor> x) {
      return std::vector<Tensor>{cholesky_by_lapack(x[0])};
    });
  else
    out.op("stablehlo.cholesky").boolean("lower", true).done();
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
    .emit = emit_cholesky,
    .read = {.mnemonic = "stablehlo.cholesky"},
    .vjp = cholesky_vjp,
    .batch = batch_unchanged,
    .traits = {.runs_on_shards = every_call},
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

struct EighAttributes {
  bool vectors = true;
  MESHARD_FIELDS(vectors)
};

void infer_eigh(const OpCall& call, ResultTypes& results) {
  const TensorType& x = call.operand(0);
  check_matrix(call, x, true);
  Dimensions sizes(x.shape.begin(), x.shape.end() - 1);
  results.push_back({real_dtype(x.dtype), Shape(std::move(sizes))});
  if (call.as<EighAttributes>().vectors) results.push_back(x);
}

void emit_eigh(const OpCall& call, OpEmission& out) {
  bool lapack = out.quirks.has(Quirk::kLapackCalls);
  bool vectors = call.as<EighAttributes>().vectors;
  emit_composition(call, out, [&](std::span<const Tensor> x) {
    if (x[0].shape().size() > 0)
      return lapack ? eigh_by_lapack(x[0], vectors) : eigh_by_loops(x[0], vectors);
    std::vector<Tensor> made{zeros(call.result().shape, call.result().dtype)};
    if (vectors) made.push_back(x[0]);
    return made;
  });
}

std::vector<Tensor> record_eigh(const Tensor& x, bool vectors) {
  return record_all(eigh_op, make_attributes(EighAttributes{vectors}), {&x, 1}, x.where());
}

// The derivative for Hermitian matrices: v (diag(dw) + f * (adjoint(v) dv)) adjoint(v) with f[i, j]
// = 1 / (w[j] - w[i]) off the diagonal (M. Giles, Collected matrix derivative results, 2008,
// section 3.1).
void eigh_vjp(const VjpCall& call, std::span<Tensor> out) {
  const Tensor& x = call.operands[0];
  std::vector<Tensor> made(call.results.begin(), call.results.end());
  bool vectors = call.as<EighAttributes>().vectors;
  if (!vectors) made = record_eigh(x, true);
  const Tensor &w = made[0], &v = made[1], &dw = call.cotangents[0];
  Shape matrix{x.dim(-1), x.dim(-1)};
  Tensor diagonal = equal(iota(DType::i32, matrix, 0), iota(DType::i32, matrix, 1));
  Tensor zero = zeros({}, x.dtype()), inner;
  if (dw.defined()) inner = where(diagonal, astype(expand_dims(dw, -1), x.dtype()), zero);
  if (vectors && call.cotangents[1].defined()) {
    Tensor gaps = astype(where(diagonal, 1, expand_dims(w, -2) - expand_dims(w, -1)), x.dtype());
    Tensor turned = matmul(adjoint(v), conjugated(call.cotangents[1])) / gaps;
    turned = where(diagonal, zero, turned);
    inner = inner.defined() ? inner + turned : turned;
  }
  if (!inner.defined()) return;
  Tensor whole = matmul(matmul(v, inner), adjoint(v));
  Tensor half = element_wise::literal(0.5, whole);
  // The op reads only the operand's lower triangle, which therefore receives the cotangents of
  // both.
  Tensor both = conjugated((whole + adjoint(whole)) * half);
  out[0] = tril(both) + tril(both, -1);
}

}  // namespace

extern constinit const OpDef eigh_op = {
    .name = "eigh",
    .operands = "x",
    .doc = "The eigenvalues of symmetric (Hermitian) matrices, and their eigenvectors if wanted.",
    .example = "eigh(matmul(x, permute_dims(x))).eigenvalues",
    .infer = infer_eigh,
    .sharding_rule = batch_of_matrices_rule,
    .emit = emit_eigh,
    .vjp = eigh_vjp,
    .batch = batch_unchanged,
    .parse_attributes = parse_attributes<EighAttributes>,
    .traits = {.runs_on_shards = every_call},
};

namespace {

Tensor symmetric_operand(const Tensor& given) {
  Tensor operand = for_factors(given);
  return (operand + adjoint(operand)) * element_wise::literal(0.5, operand);
}

}  // namespace

Eigh eigh(In x) {
  SourceScope line(x.where);
  Tensor given = square_matrices("eigh", x);
  std::vector<Tensor> made = record_eigh(symmetric_operand(given), true);
  return {from_factors(made[0], given.dtype()), from_factors(made[1], given.dtype())};
}

Tensor eigvalsh(In x) {
  SourceScope line(x.where);
  Tensor given = square_matrices("eigvalsh", x);
  return from_factors(record_eigh(symmetric_operand(given), false)[0], given.dtype());
}

namespace {

struct QrAttributes {
  bool complete = false;
  MESHARD_FIELDS(complete)
};

void infer_qr(const OpCall& call, ResultTypes& results) {
  const TensorType& x = call.operand(0);
  check_matrix(call, x, false);
  std::int64_t rows = x.shape[-2], columns = x.shape[-1];
  std::int64_t inner = call.as<QrAttributes>().complete ? rows : std::min(rows, columns);
  results.push_back({x.dtype, batch_then(x.shape, {rows, inner})});
  results.push_back({x.dtype, batch_then(x.shape, {inner, columns})});
}

void emit_qr(const OpCall& call, OpEmission& out) {
  bool lapack = out.quirks.has(Quirk::kLapackCalls);
  bool complete = call.as<QrAttributes>().complete;
  emit_composition(call, out, [&](std::span<const Tensor> x) -> std::vector<Tensor> {
    if (x[0].shape().size() > 0)
      return lapack ? qr_by_lapack(x[0], complete) : qr_by_loops(x[0], complete);
    const Shape &q = call.result(0).shape, &r = call.result(1).shape;
    return {broadcast_to(eye(q[-2], q[-1], 0, x[0].dtype()), q), zeros(r, x[0].dtype())};
  });
}

// S. F. Walter and L. Lehmann, Algorithmic differentiation of linear algebra functions (2018), for
// m >= n: (dq + q copyltu(r dr^H - dq^H q)) r^-H, where copyltu mirrors the lower triangle. Of a
// complex matrix, q changes so that the diagonal of r keeps its phases (as JAX's derivative of qr
// for LAPACK's real diagonal): the diagonal of copyltu is real.
// Undefined cotangents are zero; at least one is defined.
Tensor tall_qr_vjp(const Tensor& q, const Tensor& r, const Tensor& dq, const Tensor& dr) {
  Tensor inner;
  if (dr.defined()) inner = matmul(r, adjoint(dr));
  if (dq.defined()) {
    Tensor part = matmul(adjoint(dq), q);
    inner = inner.defined() ? inner - part : -part;
  }
  Tensor below = tril(inner, -1), sum = below + adjoint(below);
  Tensor on_diagonal = eye(q.dim(-1), q.dim(-1), 0, DType::bool_);
  Tensor middle = is_complex(inner.dtype()) ? astype(real(inner), inner.dtype()) : inner;
  sum = matmul(q, sum + where(on_diagonal, middle, zeros({}, inner.dtype())));
  if (dq.defined()) sum = add(sum, dq);
  return triangular_solve(
      r, sum, {.left_side = false, .lower = false, .transpose = TransposeKind::kAdjoint});
}

// A wide matrix is [a b] with a square: a = q u, and the rest of r is v = adjoint(q) b. The
// cotangent of v propagates to b, and through q to a.
void qr_vjp(const VjpCall& call, std::span<Tensor> out) {
  const Tensor &q = call.results[0], &r = call.results[1], &x = call.operands[0];
  Tensor dq = call.cotangents[0], dr = call.cotangents[1];
  if (!dq.defined() && !dr.defined()) return;
  if (dq.defined()) dq = conjugated(dq);
  if (dr.defined()) dr = conjugated(dr);
  std::int64_t rows = x.dim(-2), all = x.dim(-1);
  if (call.as<QrAttributes>().complete && rows > all)
    throw Error(ErrorCode::kUnimplemented,
                "[qr] a square q of matrices with more rows than columns has no derivative: use "
                "complete = false",
                call.node.where());
  if (rows >= all) {
    out[0] = conjugated(tall_qr_vjp(q, r, dq, dr));
    return;
  }
  Tensor u = slice_along(r, -1, 0, rows), b = slice_along(x, -1, rows, all);
  if (!dr.defined()) {
    out[0] = conjugated(concat({tall_qr_vjp(q, u, dq, dr), zeros_like(b)}, -1));
    return;
  }
  Tensor dv = slice_along(dr, -1, rows, all), through_v = matmul(b, adjoint(dv));
  Tensor all_dq = dq.defined() ? add(dq, through_v) : through_v;
  out[0] = conjugated(
      concat({tall_qr_vjp(q, u, all_dq, slice_along(dr, -1, 0, rows)), matmul(q, dv)}, -1));
}

}  // namespace

extern constinit const OpDef qr_op = {
    .name = "qr",
    .operands = "x",
    .doc = "The QR factors of matrices.",
    .example = "qr(x).r",
    .infer = infer_qr,
    .sharding_rule = batch_of_matrices_rule,
    .emit = emit_qr,
    .vjp = qr_vjp,
    .batch = batch_unchanged,
    .parse_attributes = parse_attributes<QrAttributes>,
    .traits = {.runs_on_shards = every_call},
};

Qr qr(In x, bool complete) {
  SourceScope line(x.where);
  Tensor given = matrices("qr", x), operand = for_factors(given);
  std::vector<Tensor> made =
      record_all(qr_op, make_attributes(QrAttributes{complete}), {&operand, 1}, x.where);
  return {from_factors(made[0], given.dtype()), from_factors(made[1], given.dtype())};
}

}  // namespace meshard
