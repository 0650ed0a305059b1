// Tested in tests/e2e/linalg_test.cc.
// Functions of linalg.h that are made of decompositions.
#include <algorithm>
#include <cmath>

#include "meshard/ops/all.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/internal/matrix_operand.h"
#include "meshard/ops/linalg.h"

namespace meshard {
using namespace internal;
namespace {

double default_tolerance(const Tensor& x) {
  return static_cast<double>(std::max(x.dim(-2), x.dim(-1))) * epsilon_of(x.dtype());
}

// Which magnitudes [..., k] count as nonzero.
Tensor kept(const Tensor& sizes, const Tensor& x, std::optional<double> rtol) {
  if (sizes.dim(-1) == 0) return zeros(sizes.shape(), DType::bool_);
  Tensor least = max(sizes, -1, true);
  return greater(sizes, least * element_wise::literal(rtol.value_or(default_tolerance(x)), least));
}

// Their inverses, and zero for the others. NaN stays.
Tensor inverses(const Tensor& values, const Tensor& counts) {
  Tensor inverse = 1 / where(counts, values, ones_like(values));
  return where(counts, inverse, values - values);
}

// The operands of a solver: matrices, and the right-hand sides as matrices.
struct System {
  Tensor matrix, side;
  DType dtype;
  bool is_vector;

  Tensor solution(const Tensor& x) const {
    return from_factors(is_vector ? squeeze(x, -1) : x, dtype);
  }
};

System system_of(std::string_view name, const Tensor& matrix, const In& b, bool transposed_rows) {
  SourceLocation where = effective_source(b.where);
  Tensor side = operand_tensor(name, b);
  DType dtype = promote(matrix.dtype(), side.dtype(), where);
  bool is_vector = side.rank() == 1;
  std::int64_t rows = matrix.dim(transposed_rows ? -1 : -2);
  if (side.rank() == 0 || side.dim(is_vector ? -1 : -2) != rows)
    throw_invalid(where, "[", name, "] matrices ", matrix.type(), " with ", rows,
                  " rows do not match the right-hand side ", side.type());
  side = for_factors(astype(side, dtype));
  if (is_vector) side = expand_dims(side, -1);
  auto [left, right] = with_common_batch(for_factors(astype(matrix, dtype)), side);
  return {left, right, dtype, is_vector};
}

}  // namespace

Tensor pinv(In x, std::optional<double> rtol, bool hermitian) {
  SourceScope line(x.where);
  Tensor given = hermitian ? square_matrices("pinv", x) : matrices("pinv", x);
  Tensor operand = for_factors(given), fixed = stop_gradient(operand), inverse;
  if (hermitian) {
    auto [w, v] = eigh(fixed);
    Tensor scale = inverses(w, kept(abs(w), operand, rtol));
    inverse = matmul(v * astype(expand_dims(scale, -2), v.dtype()), adjoint(v));
  } else {
    auto [u, s, vh] = svd(fixed);
    Tensor scale = inverses(s, kept(s, operand, rtol));
    inverse = matmul(adjoint(vh) * astype(expand_dims(scale, -2), u.dtype()), adjoint(u));
  }
  return from_factors(pseudo_inverse(operand, inverse), given.dtype());
}

Tensor matrix_rank(In x, std::optional<double> rtol) {
  SourceScope line(x.where);
  Tensor operand = for_factors(matrices("matrix_rank", x));
  Tensor counts = kept(svdvals(stop_gradient(operand)), operand, rtol);
  return sum(astype(counts, DType::i32), -1);
}

Lstsq lstsq(In a, In b, std::optional<double> rtol) {
  SourceScope line(a.where);
  System system = system_of("lstsq", matrices("lstsq", a), b, false);
  const Tensor& matrix = system.matrix;
  auto [u, s, vh] = svd(matrix);
  u = stop_gradient(u), vh = stop_gradient(vh);
  Tensor fixed = stop_gradient(s), counts = kept(fixed, matrix, rtol);
  Tensor scale = astype(expand_dims(inverses(fixed, counts), -2), u.dtype());
  Tensor right = adjoint(vh) * scale;
  Tensor inverse = pseudo_inverse(matrix, matmul(right, adjoint(u)));
  // The product of the factors with the right-hand side is more accurate than that of the inverse,
  // which has the derivative.
  Tensor x = matmul(inverse, system.side);
  x = x + stop_gradient(matmul(right, matmul(adjoint(u), system.side)) - x);
  Tensor rest = abs(system.side - matmul(matrix, x));
  Tensor residuals = sum(rest * rest, -2);
  if (system.is_vector) residuals = squeeze(residuals, -1);
  return {system.solution(x), from_factors(residuals, system.dtype),
          sum(astype(counts, DType::i32), -1), from_factors(s, system.dtype)};
}

Tensor lu_solve(In lu, In pivots, In b, TransposeKind transpose) {
  SourceScope line(lu.where);
  Tensor factors = square_matrices("lu_solve", lu), given = operand_tensor("lu_solve", pivots);
  SourceLocation where = effective_source(pivots.where);
  Dimensions of_rows(factors.shape().begin(), factors.shape().end() - 1);
  if (!is_integer(given.dtype()) || given.shape() != Shape(of_rows))
    throw_invalid(where, "[lu_solve] the pivots of the factors ", factors.type(),
                  " are integers of the shape ", Shape(of_rows), ", not ", given.type());
  System system = system_of("lu_solve", factors, b, false);
  Tensor order = lu_pivots_to_permutation(given, factors.dim(-1));
  Tensor side = system.side;
  if (side.shape().size() == 0) return system.solution(side);  // no row to take
  auto rows = [&](const Tensor& x, const Tensor& from) {
    return take_along_axis(x, broadcast_to(expand_dims(from, -1), x.shape()), -2);
  };
  if (transpose == TransposeKind::kNone) {
    Tensor y = triangular_solve(system.matrix, rows(side, order), {.unit_diagonal = true});
    return system.solution(triangular_solve(system.matrix, y, {.lower = false}));
  }
  Tensor y = triangular_solve(system.matrix, side, {.lower = false, .transpose = transpose});
  y = triangular_solve(system.matrix, y, {.unit_diagonal = true, .transpose = transpose});
  return system.solution(rows(y, argsort(order)));
}

Tensor cholesky_solve(In factor, In b, bool upper) {
  SourceScope line(factor.where);
  System system = system_of("cholesky_solve", square_matrices("cholesky_solve", factor), b, false);
  TriangularSolveOptions plain{.lower = !upper}, adjoint_of = plain;
  adjoint_of.transpose = TransposeKind::kAdjoint;
  Tensor y = triangular_solve(system.matrix, system.side, upper ? adjoint_of : plain);
  return system.solution(triangular_solve(system.matrix, y, upper ? plain : adjoint_of));
}

Tensor cond(In x, MatrixNorm norm) {
  SourceScope line(x.where);
  bool by_values = norm == MatrixNorm::kSpectral || norm == MatrixNorm::kSmallestSingular;
  Tensor given = by_values ? matrices("cond", x) : square_matrices("cond", x);
  Tensor operand = for_factors(given), made;
  if (by_values) {
    Tensor s = svdvals(operand);
    std::int64_t count = s.dim(-1);
    if (count == 0)
      throw_invalid(effective_source(x.where), "[cond] takes matrices that are not empty, not ",
                    given.type());
    Tensor first = squeeze(slice_along(s, -1, 0, 1), -1);
    Tensor last = squeeze(slice_along(s, -1, count - 1, count), -1);
    made = norm == MatrixNorm::kSpectral ? first / last : last / first;
  } else {
    made = matrix_norm(operand, false, norm) * matrix_norm(inv(operand), false, norm);
  }
  // That of a singular matrix is infinite.
  Tensor known = logical_not(any(isnan(operand), {-2, -1}));
  Tensor infinite = element_wise::literal(HUGE_VAL, made);
  return from_factors(where(logical_and(isnan(made), known), infinite, made), given.dtype());
}

Tensor tensorsolve(In a, In b) {
  SourceScope line(a.where);
  SourceLocation where = effective_source(a.where);
  Tensor left = operand_tensor("tensorsolve", a), right = operand_tensor("tensorsolve", b);
  std::int64_t rows = 1, columns = 1;
  Dimensions of_x;
  if (left.rank() < right.rank())
    throw_invalid(where, "[tensorsolve] ", left.type(), " has fewer dimensions than ",
                  right.type());
  for (int d = 0; d < left.rank(); ++d) {
    if (d < right.rank()) {
      rows *= left.dim(d);
      continue;
    }
    columns *= left.dim(d);
    of_x.push_back(left.dim(d));
  }
  if (rows != columns || rows != right.shape().size())
    throw_invalid(where, "[tensorsolve] ", left.type(), " has the shape of b, ", right.type(),
                  ", and then that of x: ", rows, " by ", columns, " is not square, or not for ",
                  right.shape().size(), " equations");
  Tensor x = solve(reshape(left, {rows, columns}), reshape(right, {rows}));
  return reshape(x, of_x);
}

}  // namespace meshard
