#include "meshard/ops/composite/linalg.h"

#include <algorithm>
#include <cmath>

#include "meshard/ops/all.h"
#include "meshard/ops/composite/internal/float_computation.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/internal/factored_solve.h"
#include "meshard/ops/internal/matrix_operand.h"
#include "meshard/ops/linalg.h"

namespace meshard {
using namespace internal;
namespace {

// The determinant by its formula, a polynomial: all derivatives are correct, also at singular
// matrices.
Tensor small_det(const Tensor& operand) {
  Tensor x = for_factors(operand);
  std::int64_t size = x.shape()[-1];
  auto at = [&](std::int64_t row, std::int64_t column) {
    return index(x, {ellipsis, row, column});
  };
  auto minor_of = [&](std::int64_t row, std::int64_t a, std::int64_t b) {
    return at(row, a) * at(row + 1, b) - at(row, b) * at(row + 1, a);
  };
  Tensor result = at(0, 0);
  if (size == 2) result = minor_of(0, 0, 1);
  if (size == 3)
    result =
        at(0, 0) * minor_of(1, 1, 2) - at(0, 1) * minor_of(1, 0, 2) + at(0, 2) * minor_of(1, 0, 1);
  return from_factors(result, operand.dtype());
}

// The largest size of determinants computed as polynomials. Up to it cancellation costs a few
// digits, for larger matrices all of them.
constexpr std::int64_t kPolynomialSize = 8;

// Matrix products [..., n, n] by [..., n, n] as element-wise products, which no device computes at
// reduced precision.
Tensor exact_product(const Tensor& a, const Tensor& b) {
  return sum(expand_dims(a, -1) * expand_dims(b, -3), -2);
}

// The determinant by a division-free algorithm (R. S. Bird, "A simple division-free algorithm for
// computing determinants", 2011), a polynomial: all derivatives are correct, also at singular
// matrices.
Tensor polynomial_det(const Tensor& operand) {
  Tensor a = for_factors(operand), f = a;
  std::int64_t size = a.shape()[-1];
  Tensor behind = tril(ones({size, size}, a.dtype()), -1),
         identity = eye(size, std::nullopt, 0, a.dtype());
  for (std::int64_t i = 1; i < size; ++i) {
    // Bird's step: keeps the elements above the diagonal; each diagonal element becomes minus the
    // sum of those after it.
    Tensor rest = sum(expand_dims(diagonal(f), -1) * behind, -2);
    f = exact_product(triu(f, 1) - expand_dims(rest, -1) * identity, a);
  }
  Tensor first = index(f, {ellipsis, 0, 0});
  Tensor result = size % 2 == 0 ? -first : first;
  return from_factors(result, operand.dtype());
}

}  // namespace

Tensor solve(In a, In b) {
  SourceScope line(a.where);
  SourceLocation where = effective_source(a.where);
  Tensor matrix = square_matrices("solve", a), side = operand_tensor("solve", b);
  DType dtype = promote(matrix.dtype(), side.dtype(), where);
  bool is_vector = side.shape().rank() == 1;
  if (side.shape().rank() == 0 || side.shape()[is_vector ? -1 : -2] != matrix.shape()[-1])
    throw_invalid(where, "[solve] matrices of size ", matrix.shape()[-1], " (", matrix.type(),
                  ") do not match the right-hand side ", side.type());
  matrix = for_factors(astype(matrix, dtype));
  side = for_factors(astype(side, dtype));
  if (is_vector) side = expand_dims(side, -1);
  auto [left, right] = with_common_batch(matrix, side);
  Tensor x = solve_by_lu(left, right);
  if (is_vector) x = squeeze(x, -1);
  return from_factors(x, dtype);
}

Tensor inv(In x) {
  SourceScope line(x.where);
  Tensor operand = square_matrices("inv", x);
  return solve(operand, eye(operand.shape()[-1], std::nullopt, 0, for_factors(operand).dtype()));
}

SignedLog slogdet(In x) {
  SourceScope line(x.where);
  Tensor given = square_matrices("slogdet", x);
  SignedLu factors = signed_lu(for_factors(given));
  Tensor scale = diagonal(factors.lu), size = abs(scale), zero = equal(size, 0);
  Tensor signs = sign(scale);
  if (is_complex(scale.dtype())) {
    Tensor divisor = astype(where(zero, ones_like(size), size), scale.dtype());
    signs = where(zero, zeros_like(scale), scale / divisor);
  }
  return {from_factors(factors.sign * prod(signs, -1), given.dtype()),
          from_factors(sum(log(size), -1), given.dtype())};
}

Tensor det(In x) {
  SourceScope line(x.where);
  Tensor operand = square_matrices("det", x);
  std::int64_t size = operand.shape()[-1];
  if (size == 0)
    return ones(batch_then(operand.shape(), {}),
                is_inexact(operand.dtype()) ? operand.dtype() : kDefaultFloat);
  if (size <= 3) return small_det(operand);
  if (size > 3 && size <= kPolynomialSize) return polynomial_det(operand);
  SignedLu factors = signed_lu(for_factors(operand));
  Tensor scale = diagonal(factors.lu), product = prod(diagonal(regular_factor(factors.lu)), -1);
  // For a singular matrix the value is 0, with the derivative of the product.
  Tensor singular = any(equal(scale, 0), -1);
  return from_factors(factors.sign * where(singular, product - stop_gradient(product), product),
                      operand.dtype());
}

Tensor matrix_power(In x, std::int64_t n) {
  SourceScope line(x.where);
  Tensor base = square_matrices("matrix_power", x);
  if (n < 0) base = inv(base);
  auto left = static_cast<std::uint64_t>(n < 0 ? -n : n);
  Tensor power;
  for (; left != 0; left >>= 1) {
    if (left & 1) power = power.defined() ? matmul(power, base) : base;
    if (left > 1) base = matmul(base, base);
  }
  if (power.defined()) return power;
  Tensor unit = eye(base.shape()[-1], std::nullopt, 0, base.dtype());
  return broadcast_to(unit, base.shape());
}

Tensor matrix_transpose(In x) {
  SourceScope line(x.where);
  return transposed(matrices("matrix_transpose", x));
}

Tensor diagonal(In x, std::int64_t offset) {
  SourceScope line(x.where);
  Tensor operand = matrices("diagonal", x);
  std::int64_t rows = operand.shape()[-2], columns = operand.shape()[-1];
  std::int64_t row = std::max<std::int64_t>(-offset, 0), column = std::max<std::int64_t>(offset, 0);
  std::int64_t count = std::max<std::int64_t>(std::min(rows - row, columns - column), 0);
  // In the flattened matrix, diagonal elements are columns + 1 apart.
  Dimensions sizes = batch_then(operand.shape(), {rows * columns}).sizes();
  Tensor flat = reshape(operand, sizes);
  Dimensions start(sizes.size(), 0), stop = sizes, stride(sizes.size(), 1);
  start.back() = count == 0 ? 0 : row * columns + column;
  stop.back() = count == 0 ? 0 : start.back() + (count - 1) * (columns + 1) + 1;
  stride.back() = columns + 1;
  return slice(flat, std::move(start), std::move(stop), std::move(stride));
}

Tensor trace(In x, std::int64_t offset) {
  SourceScope line(x.where);
  return sum(diagonal(x, offset), -1);
}

Tensor cross(In a, In b, std::int64_t dimension) {
  SourceScope line(a.where);
  SourceLocation where = effective_source(a.where);
  Tensor left = operand_tensor("cross", a), right = operand_tensor("cross", b);
  for (const Tensor* operand : {&left, &right}) {
    int rank = operand->shape().rank();
    std::int64_t d = normalize_dimension(dimension, rank, "cross", where);
    if (operand->shape()[static_cast<int>(d)] != 3)
      throw_invalid(where, "[cross] dimension ", dimension, " of ", operand->type(),
                    " does not have size 3");
  }
  // Counted from the last dimension, so that it is the same dimension in both operands.
  std::int64_t from_last = dimension < 0 ? dimension : dimension - left.shape().rank();
  std::vector<Tensor> u = split(left, 3, from_last), v = split(right, 3, from_last);
  return concat({u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]},
                from_last);
}

Tensor vecdot(In a, In b, std::int64_t dimension) {
  SourceScope line(a.where);
  Tensor left = operand_tensor("vecdot", a), right = operand_tensor("vecdot", b);
  std::int64_t from_last = dimension < 0 ? dimension : dimension - left.shape().rank();
  return sum(multiply(conj(left), right), from_last);
}

Tensor vector_norm(In x, DimensionList dimensions, bool keepdims, double order) {
  SourceScope line(x.where);
  Tensor operand = operand_tensor("vector_norm", x);
  if (!is_inexact(operand.dtype())) operand = astype(operand, kDefaultFloat);
  DType dtype = real_dtype(operand.dtype());
  Tensor size = for_computation(abs(operand));
  auto done = [&](const Tensor& norm) { return astype(norm, dtype); };
  if (std::isinf(order))
    return done(order > 0 ? max(size, dimensions, keepdims) : min(size, dimensions, keepdims));
  if (order == 0) return done(sum(astype(not_equal(size, 0), size.dtype()), dimensions, keepdims));
  if (order == 1) return done(sum(size, dimensions, keepdims));
  if (order != 2) {
    Tensor power = element_wise::literal(order, size);
    Tensor total = sum(pow(size, power), dimensions, keepdims);
    return done(pow(total, element_wise::literal(1 / order, total)));
  }
  // Computed from real and imaginary parts: abs of a complex zero would lose the second derivative.
  auto squared = [](const Tensor& part) {
    Tensor wide = for_computation(part);
    return wide * wide;
  };
  Tensor each = is_complex(operand.dtype()) ? squared(real(operand)) + squared(imag(operand))
                                            : squared(operand);
  Tensor squares = sum(each, dimensions, keepdims);
  // Avoids the infinite derivative of the square root at zero.
  Tensor zero = equal(squares, 0);
  return done(where(zero, 0, sqrt(where(zero, 1, squares))));
}

Tensor matrix_norm(In x, bool keepdims, MatrixNorm norm) {
  SourceScope line(x.where);
  Tensor operand = matrices("matrix_norm", x);
  if (norm == MatrixNorm::kFrobenius) return vector_norm(operand, {-2, -1}, keepdims);
  Tensor result;
  if (norm == MatrixNorm::kSpectral || norm == MatrixNorm::kSmallestSingular ||
      norm == MatrixNorm::kNuclear) {
    Tensor values = svdvals(operand);
    result = norm == MatrixNorm::kNuclear    ? sum(values, -1, true)
             : norm == MatrixNorm::kSpectral ? max(values, -1, true)
                                             : min(values, -1, true);
    return keepdims ? expand_dims(result, -1) : squeeze(result, -1);
  }
  bool columns = norm == MatrixNorm::kLargestColumnSum || norm == MatrixNorm::kSmallestColumnSum;
  bool largest = norm == MatrixNorm::kLargestColumnSum || norm == MatrixNorm::kLargestRowSum;
  Tensor sums = sum(abs(operand), columns ? -2 : -1, true);
  result = largest ? max(sums, {-2, -1}, true) : min(sums, {-2, -1}, true);
  return keepdims ? result : squeeze(result, {-2, -1});
}

}  // namespace meshard
