// Primitives of linalg.h: LU factors, singular values, eigenvalues, Schur form.
#include <algorithm>

#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/definition/op_table.h"
#include "meshard/ops/internal/by_lapack.h"
#include "meshard/ops/internal/by_loops.h"
#include "meshard/ops/internal/composition.h"
#include "meshard/ops/internal/factored_solve.h"
#include "meshard/ops/internal/matrix_operand.h"
#include "meshard/ops/linalg.h"

namespace meshard {
using namespace internal;
namespace {

Tensor empty_of(const TensorType& type) { return zeros(type.shape, type.dtype); }

bool calls_lapack(const OpEmission& out) { return out.quirks.has(Quirk::kLapackCalls); }

// ---- LU factors.

void infer_lu(const OpCall& call, ResultTypes& results) {
  const TensorType& x = call.operand(0);
  check_matrix(call, x, false);
  std::int64_t rows = x.shape[-2];
  results.push_back(x);
  results.push_back({DType::i32, batch_then(x.shape, {std::min(rows, x.shape[-1])})});
  results.push_back({DType::i32, batch_then(x.shape, {rows})});
  results.push_back({real_dtype(x.dtype), batch_then(x.shape, {})});
}

void emit_lu(const OpCall& call, OpEmission& out) {
  bool lapack = calls_lapack(out);
  emit_composition(call, out, [&](std::span<const Tensor> x) -> std::vector<Tensor> {
    if (x[0].shape().size() > 0) return lapack ? lu_by_lapack(x[0]) : lu_by_loops(x[0]);
    Tensor order = iota(DType::i32, call.result(2).shape, call.result(2).rank() - 1);
    return {x[0], empty_of(call.result(1)), order,
            ones(call.result(3).shape, call.result(3).dtype)};
  });
}

// As JAX's: with l and u extended by ones to square matrices, inv(l) dx inv(u) splits into the
// derivatives of l, below the diagonal, and of u.
void lu_vjp(const VjpCall& call, std::span<Tensor> out) {
  const Tensor &lu = call.results[0], &x = call.operands[0];
  if (!call.cotangents[0].defined() || x.shape().size() == 0) return;
  Tensor g = conjugated(call.cotangents[0]);
  std::int64_t rows = x.dim(-2), columns = x.dim(-1), least = std::min(rows, columns);
  Tensor l = pad_along(slice_along(lu, -1, 0, least), 0, -1, 0, rows - least);
  Tensor u = triu(pad_along(slice_along(lu, -2, 0, least), 0, -2, 0, columns - least));
  if (columns > least) {
    Tensor on_diagonal = eye(columns, columns, 0, DType::bool_);
    Tensor added = greater_equal(iota(DType::i32, {columns, 1}, 0), static_cast<int>(least));
    u = where(logical_and(on_diagonal, added), ones_like(u), u);
  }
  if (call.cotangents[3].defined()) u = regular_factor(u);
  Tensor unit_l = tril(l, -1) + eye(rows, rows, 0, l.dtype());
  Tensor inner = tril(matmul(adjoint(unit_l), g), -1) + triu(matmul(g, adjoint(u)));
  inner = triangular_solve(unit_l, inner,
                           {.unit_diagonal = true, .transpose = TransposeKind::kAdjoint});
  inner = triangular_solve(
      u, inner, {.left_side = false, .lower = false, .transpose = TransposeKind::kAdjoint});
  Tensor back = expand_dims(argsort(call.results[2]), -1);
  out[0] = conjugated(take_along_axis(inner, broadcast_to(back, inner.shape()), -2));
}

}  // namespace

extern constinit const OpDef lu_op = {
    .name = "lu",
    .operands = "x",
    .doc =
        "The LU factors of matrices in one matrix, their pivots, and the permutation of the rows "
        "and its sign.",
    .example = "linalg::lu_factor(x).lu",
    .infer = infer_lu,
    .sharding_rule = batch_of_matrices_rule,
    .emit = emit_lu,
    .vjp = lu_vjp,
    .batch = batch_unchanged,
    .traits = {.runs_on_shards = every_call},
};

SignedLu internal::signed_lu(const Tensor& x) {
  std::vector<Tensor> made = record_all(lu_op, nullptr, {&x, 1}, x.where());
  return {made[0], made[1], made[2], made[3]};
}

Tensor internal::regular_factor(const Tensor& u) {
  Tensor fixed = stop_gradient(u), size = max(abs(fixed), {-2, -1}, true);
  Tensor least =
      where(equal(size, 0), 1, size) * element_wise::literal(epsilon_of(u.dtype()), size);
  Tensor on_diagonal = eye(u.dim(-2), u.dim(-1), 0, DType::bool_);
  return u + astype(where(logical_and(on_diagonal, equal(fixed, 0)), least, zeros_like(least)),
                    u.dtype());
}

namespace {

struct PivotsAttributes {
  std::int64_t size = 0;
  MESHARD_FIELDS(size)
};

}  // namespace

extern constinit const OpDef lu_pivots_to_permutation_op = {
    .name = "lu_pivots_to_permutation",
    .operands = "pivots",
    .example = "linalg::lu_pivots_to_permutation(linalg::lu_factor(x).pivots, 2)",
    .infer =
        [](const OpCall& call, ResultTypes& results) {
          const TensorType& pivots = call.operand(0);
          std::int64_t size = call.as<PivotsAttributes>().size;
          if (pivots.dtype != DType::i32 || pivots.rank() < 1)
            call.fail("takes pivots in i32, not ", pivots);
          if (size < pivots.shape[-1])
            call.fail("there are ", pivots.shape[-1], " pivots (", pivots, ") for ", size, " rows");
          results.push_back({DType::i32, batch_then(pivots.shape, {size}, 1)});
        },
    .sharding_rule = batch_of_vectors_rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          bool lapack = calls_lapack(out);
          std::int64_t size = call.as<PivotsAttributes>().size;
          emit_composition(call, out, [&](std::span<const Tensor> x) -> std::vector<Tensor> {
            if (x[0].shape().size() == 0)
              return {iota(DType::i32, call.result().shape, call.result().rank() - 1)};
            return {lapack ? permutation_by_lapack(x[0], size) : permutation_by_loops(x[0], size)};
          });
        },
    .vjp = kNotDifferentiable,
    .batch = batch_unchanged,
    .parse_attributes = parse_attributes<PivotsAttributes>,
    .traits = {.runs_on_shards = every_call},
};

Tensor lu_pivots_to_permutation(In pivots, std::int64_t size) {
  SourceScope line(pivots.where);
  Tensor given = operand_tensor(lu_pivots_to_permutation_op, pivots);
  if (!is_integer(given.dtype()))
    throw_invalid(effective_source(pivots.where), "[lu_pivots_to_permutation] takes integers, not ",
                  given.type());
  Tensor operand = astype(given, DType::i32);
  return record(lu_pivots_to_permutation_op, make_attributes(PivotsAttributes{size}), {&operand},
                pivots.where);
}

// ---- Solutions.

namespace {

struct FactoredSolveAttributes {
  bool transposed = false;
  MESHARD_FIELDS(transposed)
};

// x of a x = b, from a permutation and factors of a: a[permutation] = l u.
Tensor solved_by_factors(const Tensor& lu, const Tensor& permutation, const Tensor& b,
                         TransposeKind transpose) {
  auto rows = [](const Tensor& x, const Tensor& order) {
    return take_along_axis(x, broadcast_to(expand_dims(order, -1), x.shape()), -2);
  };
  if (transpose == TransposeKind::kNone) {
    Tensor y = triangular_solve(lu, rows(b, permutation), {.unit_diagonal = true});
    return triangular_solve(lu, y, {.lower = false});
  }
  Tensor y = triangular_solve(lu, b, {.lower = false, .transpose = transpose});
  y = triangular_solve(lu, y, {.unit_diagonal = true, .transpose = transpose});
  return rows(y, argsort(permutation));
}

Tensor record_factored_solve(std::span<const Tensor> operands, bool transposed) {
  return record_all(factored_solve_op, make_attributes(FactoredSolveAttributes{transposed}),
                    operands, operands[0].where())[0];
}

// The factors are functions of the matrix, through which no cotangent goes.
void factored_solve_vjp(const VjpCall& call, std::span<Tensor> out) {
  bool transposed_system = call.as<FactoredSolveAttributes>().transposed;
  const Tensor& x = call.results[0];
  std::vector<Tensor> operands(call.operands.begin(), call.operands.end());
  operands[3] = call.cotangents[0];
  Tensor b_cotangent = record_factored_solve(operands, !transposed_system);
  if (call.needs(3)) out[3] = b_cotangent;
  if (!call.needs(0)) return;
  out[0] =
      transposed_system ? -matmul(x, transposed(b_cotangent)) : -matmul(b_cotangent, transposed(x));
}

}  // namespace

extern constinit const OpDef factored_solve_op = {
    .name = "factored_solve",
    .operands = "a, lu, permutation, b",
    .doc = "Solves a x = b, or with the transpose of a, with the LU factors of a.",
    .example = "solve(matmul(x, permute_dims(x)) + eye(2), x)",
    .infer =
        [](const OpCall& call, ResultTypes& results) {
          const TensorType &a = call.operand(0), &b = call.operand(3);
          check_matrix(call, a, true);
          if (call.operand(1) != a) call.fail("the factors are ", call.operand(1), ", not ", a);
          if (TensorType order{DType::i32, batch_then(a.shape, {a.shape[-1]})};
              call.operand(2) != order)
            call.fail("the permutation is ", call.operand(2), ", not ", order);
          if (b.dtype != a.dtype || b.rank() != a.rank() ||
              b.shape != batch_then(a.shape, {a.shape[-1], b.shape[-1]}))
            call.fail("matrices ", a, " do not match the right-hand side ", b);
          results.push_back(b);
        },
    .sharding_rule = batch_of_matrices_rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          bool transposed_system = call.as<FactoredSolveAttributes>().transposed;
          emit_composition(call, out, [&](std::span<const Tensor> x) -> std::vector<Tensor> {
            if (x[3].shape().size() == 0) return {x[3]};
            return {solved_by_factors(
                x[1], x[2], x[3],
                transposed_system ? TransposeKind::kTranspose : TransposeKind::kNone)};
          });
        },
    .vjp = factored_solve_vjp,
    .batch = batch_unchanged,
    .parse_attributes = parse_attributes<FactoredSolveAttributes>,
    .traits = {.runs_on_shards = every_call},
};

Tensor factored_solve(In a, In lu, In permutation, In b, bool transposed) {
  SourceScope line(a.where);
  auto operand = [](const In& x) { return operand_tensor(factored_solve_op, x); };
  const Tensor operands[] = {operand(a), operand(lu), operand(permutation), operand(b)};
  return record_factored_solve(operands, transposed);
}

Tensor internal::solve_by_lu(const Tensor& a, const Tensor& b) {
  SignedLu factors = signed_lu(stop_gradient(a));
  const Tensor operands[] = {a, factors.lu, factors.permutation, b};
  return record_factored_solve(operands, false);
}

// ---- Singular values.

namespace {

struct SvdAttributes {
  bool full_matrices = false;
  bool vectors = true;
  MESHARD_FIELDS(full_matrices, vectors)
};

void infer_svd(const OpCall& call, ResultTypes& results) {
  const TensorType& x = call.operand(0);
  const auto& [full, vectors] = call.as<SvdAttributes>();
  check_matrix(call, x, false);
  std::int64_t rows = x.shape[-2], columns = x.shape[-1], least = std::min(rows, columns);
  TensorType values{real_dtype(x.dtype), batch_then(x.shape, {least})};
  if (vectors) results.push_back({x.dtype, batch_then(x.shape, {rows, full ? rows : least})});
  results.push_back(values);
  if (vectors) results.push_back({x.dtype, batch_then(x.shape, {full ? columns : least, columns})});
}

std::vector<Tensor> record_svd(const Tensor& x, SvdAttributes attributes) {
  return record_all(svd_op, make_attributes(attributes), {&x, 1}, x.where());
}

void emit_svd(const OpCall& call, OpEmission& out) {
  bool lapack = calls_lapack(out), full = call.as<SvdAttributes>().full_matrices,
       vectors = call.as<SvdAttributes>().vectors;
  emit_composition(call, out, [&](std::span<const Tensor> x) -> std::vector<Tensor> {
    if (x[0].shape().size() > 0)
      return lapack ? svd_by_lapack(x[0], full, vectors) : svd_by_loops(x[0], full, vectors);
    if (!vectors) return {empty_of(call.result())};
    return {unit_matrices(call.result(0)), empty_of(call.result(1)), unit_matrices(call.result(2))};
  });
}

// The transpose of JAX's derivative (jax/_src/lax/linalg.py, _svd_jvp_rule), which is that of
// J. Townsend, Differentiating the singular value decomposition, 2016.
void svd_vjp(const VjpCall& call, std::span<Tensor> out) {
  const auto& [full, vectors] = call.as<SvdAttributes>();
  const Tensor& x = call.operands[0];
  std::int64_t rows = x.dim(-2), columns = x.dim(-1), least = std::min(rows, columns);
  if (!vectors) {
    std::vector<Tensor> made = record_svd(x, {});
    Tensor ds = astype(expand_dims(call.cotangents[0], -2), x.dtype());
    out[0] = conjugated(matmul(made[0] * ds, made[2]));
    return;
  }
  bool of_vectors = call.cotangents[0].defined() || call.cotangents[2].defined();
  if (full && of_vectors && rows != columns)
    throw Error(ErrorCode::kUnimplemented,
                "[svd] square u and vh of matrices that are not square have no derivative: use "
                "full_matrices = false",
                call.node.where());
  Tensor u = slice_along(call.results[0], -1, 0, least), s = call.results[1];
  Tensor v = adjoint(slice_along(call.results[2], -2, 0, least));
  DType dtype = x.dtype();
  Tensor row = expand_dims(s, -2), wide_row = astype(row, dtype),
         wide_column = transposed(wide_row);
  Tensor on_diagonal = eye(least, least, 0, DType::bool_), zero = zeros({}, dtype);
  Tensor inner;
  auto add_inner = [&](const Tensor& part) { inner = inner.defined() ? inner + part : part; };
  if (call.cotangents[1].defined())
    add_inner(where(on_diagonal, astype(expand_dims(call.cotangents[1], -1), dtype), zero));
  Tensor total;
  if (of_vectors) {
    Tensor gaps = (row + transposed(row)) * (row - transposed(row));
    Tensor f = astype(
        where(on_diagonal, zeros_like(gaps), 1 / where(on_diagonal, ones_like(gaps), gaps)), dtype);
    if (const Tensor& given = call.cotangents[0]; given.defined()) {
      Tensor du = conjugated(given), of_u = matmul(adjoint(u), du);
      Tensor turned = f * of_u;
      add_inner((turned + adjoint(turned)) * wide_row);
      if (is_complex(dtype)) {
        // The phases of the columns of u and v change together; v keeps its own.
        Tensor absent = equal(s, 0);
        Tensor inverse = where(absent, zeros_like(s), 1 / where(absent, ones_like(s), s));
        Tensor own = where(on_diagonal, of_u, zero) * astype(expand_dims(inverse, -2), dtype);
        add_inner((own - adjoint(own)) * element_wise::literal(0.5, own));
      }
      if (rows > least) total = matmul((du - matmul(u, of_u)) / wide_row, adjoint(v));
    }
    if (const Tensor& given = call.cotangents[2]; given.defined()) {
      Tensor dv = adjoint(conjugated(given)), of_v = matmul(adjoint(v), dv);
      Tensor turned = f * of_v;
      add_inner(wide_column * (turned + adjoint(turned)));
      if (columns > least) {
        Tensor part = matmul(u, adjoint((dv - matmul(v, of_v)) / wide_row));
        total = total.defined() ? total + part : part;
      }
    }
  }
  if (inner.defined()) {
    Tensor part = matmul(matmul(u, inner), adjoint(v));
    total = total.defined() ? total + part : part;
  }
  if (total.defined()) out[0] = conjugated(total);
}

}  // namespace

extern constinit const OpDef svd_op = {
    .name = "svd",
    .operands = "x",
    .doc = "The singular value decomposition of matrices, or their singular values only.",
    .example = "linalg::svd(x).s",
    .infer = infer_svd,
    .sharding_rule = batch_of_matrices_rule,
    .emit = emit_svd,
    .vjp = svd_vjp,
    .batch = batch_unchanged,
    .parse_attributes = parse_attributes<SvdAttributes>,
    .traits = {.runs_on_shards = every_call},
};

// ---- Eigenvalues of general matrices.

namespace {

struct EigAttributes {
  bool vectors = true;
  MESHARD_FIELDS(vectors)
};

std::vector<Tensor> record_eig(const Tensor& x, bool vectors) {
  return record_all(eig_op, make_attributes(EigAttributes{vectors}), {&x, 1}, x.where());
}

// C. Boeddeker et al., On the computation of complex-valued gradients with application to
// statistically optimum beamforming, 2017, equations 4.60 and 4.77, for eigenvectors of norm 1.
void eig_vjp(const VjpCall& call, std::span<Tensor> out) {
  const Tensor& x = call.operands[0];
  bool has_vectors = call.as<EigAttributes>().vectors;
  std::vector<Tensor> made(call.results.begin(), call.results.end());
  if (!has_vectors) made = record_eig(x, true);
  const Tensor &w = made[0], &v = made[1];
  std::int64_t n = x.dim(-1);
  Tensor on_diagonal = eye(n, n, 0, DType::bool_), zero = zeros({}, v.dtype()), inner;
  if (has_vectors && call.cotangents[1].defined()) {
    Tensor of_v = matmul(adjoint(v), conjugated(call.cotangents[1]));
    Tensor sizes = astype(real(diagonal(of_v)), v.dtype());
    Tensor turned = of_v - matmul(adjoint(v), v) * expand_dims(sizes, -2);
    Tensor gaps = conj(expand_dims(w, -2) - expand_dims(w, -1));
    inner = where(on_diagonal, zero, turned / where(on_diagonal, ones_like(gaps), gaps));
  }
  if (call.cotangents[0].defined()) {
    Tensor dw = where(on_diagonal, expand_dims(conj(call.cotangents[0]), -1), zero);
    inner = inner.defined() ? inner + dw : dw;
  }
  if (!inner.defined()) return;
  Tensor whole = conj(solve(adjoint(v), matmul(inner, adjoint(v))));
  out[0] = is_complex(x.dtype()) ? whole : real(whole);
}

}  // namespace

extern constinit const OpDef eig_op = {
    .name = "eig",
    .operands = "x",
    .doc = "The eigenvalues of square matrices, and their eigenvectors if wanted.",
    .example = "linalg::eigvals(matmul(x, permute_dims(x)))",
    .infer =
        [](const OpCall& call, ResultTypes& results) {
          const TensorType& x = call.operand(0);
          check_matrix(call, x, true);
          DType dtype = complex_dtype(x.dtype);
          results.push_back({dtype, batch_then(x.shape, {x.shape[-1]})});
          if (call.as<EigAttributes>().vectors) results.push_back({dtype, x.shape});
        },
    .sharding_rule = batch_of_matrices_rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          bool vectors = call.as<EigAttributes>().vectors;
          bool lapack = calls_lapack(out);
          emit_composition(call, out, [&](std::span<const Tensor> x) {
            if (x[0].shape().size() > 0)
              return lapack ? eig_by_lapack(x[0], vectors) : eig_by_loops(x[0], vectors);
            std::vector<Tensor> made{empty_of(call.result())};
            if (vectors) made.push_back(empty_of(call.result(1)));
            return made;
          });
        },
    .vjp = eig_vjp,
    .batch = batch_unchanged,
    .parse_attributes = parse_attributes<EigAttributes>,
    .traits = {.runs_on_shards = every_call},
};

extern constinit const OpDef schur_op = {
    .name = "schur",
    .operands = "x",
    .doc = "The Schur form of square matrices, and the Schur vectors.",
    .example = "linalg::schur(matmul(x, permute_dims(x)), true).t",
    .infer =
        [](const OpCall& call, ResultTypes& results) {
          check_matrix(call, call.operand(0), true);
          results.push_back(call.operand(0));
          results.push_back(call.operand(0));
        },
    .sharding_rule = batch_of_matrices_rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          bool lapack = calls_lapack(out);
          if (!lapack && !is_complex(call.operand(0).dtype))
            throw Error(ErrorCode::kUnimplemented,
                        "[schur] the real Schur form needs LAPACK, which programs of this platform "
                        "cannot call or which was not found (MESHARD_LAPACK_LIBRARY): use "
                        "complex_form = true",
                        call.where);
          emit_composition(call, out, [&](std::span<const Tensor> x) -> std::vector<Tensor> {
            if (x[0].shape().size() == 0) return {x[0], x[0]};
            return lapack ? schur_by_lapack(x[0]) : schur_by_loops(x[0]);
          });
        },
    .vjp = kNotDifferentiable,
    .batch = batch_unchanged,
    .traits = {.runs_on_shards = every_call},
};

// ---- Public functions.

LuFactors lu_factor(In x) {
  SourceScope line(x.where);
  Tensor given = matrices("lu_factor", x);
  SignedLu factors = signed_lu(for_factors(given));
  return {from_factors(factors.lu, given.dtype()), factors.pivots};
}

Lu lu(In x) {
  SourceScope line(x.where);
  Tensor given = matrices("lu", x);
  SignedLu factors = signed_lu(for_factors(given));
  std::int64_t rows = given.dim(-2), columns = given.dim(-1), least = std::min(rows, columns);
  Tensor l =
      tril(slice_along(factors.lu, -1, 0, least), -1) + eye(rows, least, 0, factors.lu.dtype());
  Tensor u = triu(slice_along(factors.lu, -2, 0, least));
  Tensor p = equal(iota(DType::i32, {rows, 1}, 0), expand_dims(factors.permutation, -2));
  DType dtype = given.dtype();
  return {from_factors(astype(p, l.dtype()), dtype), from_factors(l, dtype),
          from_factors(u, dtype)};
}

Svd svd(In x, bool full_matrices) {
  SourceScope line(x.where);
  Tensor given = matrices("svd", x);
  std::vector<Tensor> made = record_svd(for_factors(given), {.full_matrices = full_matrices});
  for (Tensor& each : made) each = from_factors(each, given.dtype());
  return {made[0], made[1], made[2]};
}

Tensor svdvals(In x) {
  SourceScope line(x.where);
  Tensor given = matrices("svdvals", x);
  return from_factors(record_svd(for_factors(given), {.vectors = false})[0], given.dtype());
}

Eig eig(In x) {
  SourceScope line(x.where);
  std::vector<Tensor> made = record_eig(for_factors(square_matrices("eig", x)), true);
  return {made[0], made[1]};
}

Tensor eigvals(In x) {
  SourceScope line(x.where);
  return record_eig(for_factors(square_matrices("eigvals", x)), false)[0];
}

Schur schur(In x, bool complex_form) {
  SourceScope line(x.where);
  Tensor given = for_factors(square_matrices("schur", x));
  if (complex_form) given = astype(given, complex_dtype(given.dtype()));
  std::vector<Tensor> made = record_all(schur_op, nullptr, {&given, 1}, x.where);
  return {made[0], made[1]};
}

}  // namespace meshard
