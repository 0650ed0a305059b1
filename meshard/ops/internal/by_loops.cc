// Tested in tests/e2e/linalg_test.cc.
#include "meshard/ops/internal/by_loops.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "meshard/ops/all.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/internal/matrix_operand.h"

namespace meshard::internal {
namespace {

using Carries = std::vector<Tensor>;

Tensor i32(std::int64_t number) { return index_state(number); }

// body(k, carries) for k = 0, 1, ... below count.
Carries repeated(std::int64_t count, Carries carries,
                 const std::function<Carries(const Tensor&, std::span<const Tensor>)>& body) {
  carries.insert(carries.begin(), i32(0));
  Carries after =
      while_tensors([&](std::span<const Tensor> c) { return Carries{less(c[0], i32(count))}; },
                    [&](std::span<const Tensor> c) {
                      Carries next = body(c[0], c.subspan(1));
                      next.insert(next.begin(), c[0] + 1);
                      return next;
                    },
                    carries);
  after.erase(after.begin());
  return after;
}

Tensor number(double value, DType dtype) {
  return element_wise::literal(value, zeros({}, real_dtype(dtype)));
}

// 0, 1, ... along the rows (columns) of matrices.
Tensor row_numbers(std::int64_t rows) { return iota(DType::i32, {rows, 1}, 0); }
Tensor column_numbers(std::int64_t columns) { return iota(DType::i32, {1, columns}, 1); }

Tensor real_part(const Tensor& x) { return is_complex(x.dtype()) ? real(x) : x; }
// A real tensor in the dtype of `x`.
Tensor as(const Tensor& real_numbers, const Tensor& x) { return astype(real_numbers, x.dtype()); }

// Squares of magnitudes.
Tensor squares(const Tensor& x) {
  if (!is_complex(x.dtype())) return x * x;
  Tensor re = real(x), im = imag(x);
  return re * re + im * im;
}

// z / |z|, and 1 for 0.
Tensor phase(const Tensor& z) {
  Tensor size = abs(z), zero = equal(size, 0);
  return where(zero, ones_like(z), z / as(where(zero, ones_like(size), size), z));
}

// The column (row) number k, as matrices.
Tensor column_of(const Tensor& x, const Tensor& k) {
  std::vector<In> starts(static_cast<std::size_t>(x.rank()), In(0));
  starts.back() = k;
  Dimensions sizes = x.shape().sizes();
  sizes.back() = 1;
  return dynamic_slice(x, starts, sizes);
}
Tensor row_of(const Tensor& x, const Tensor& k) {
  std::vector<In> starts(static_cast<std::size_t>(x.rank()), In(0));
  starts[starts.size() - 2] = k;
  Dimensions sizes = x.shape().sizes();
  sizes[sizes.size() - 2] = 1;
  return dynamic_slice(x, starts, sizes);
}

// Row order[...] of each matrix, [..., 1, n].
Tensor row_at(const Tensor& x, const Tensor& at) {
  Dimensions sizes = x.shape().sizes();
  sizes[sizes.size() - 2] = 1;
  return take_along_axis(x, broadcast_to(as_matrices(at), Shape(sizes)), -2);
}

Tensor exchanged(const Tensor& order, const Tensor& k, const Tensor& pivot) {
  Tensor at = iota(DType::i32, order.shape(), order.rank() - 1), other = expand_dims(pivot, -1);
  Tensor from = where(equal(at, k), broadcast_to(other, order.shape()),
                      where(equal(at, other), broadcast_to(k, order.shape()), at));
  return take_along_axis(order, from, -1);
}

// A rotation for each of h pairs: new p = c p - s q e, new q = s p + c q e.
struct Rotations {
  Tensor c, s, e;  // c and s are real; |e| = 1
};

// The rotations that diagonalize [[a, g], [conj(g), b]], for the pairs that `turned` has.
Rotations rotations(const Tensor& a, const Tensor& b, const Tensor& g, const Tensor& turned) {
  Tensor size = abs(g), safe = where(turned, size, ones_like(size));
  Tensor tau = (b - a) / (safe * 2);
  Tensor magnitude = abs(tau);
  Tensor t = 1 / (magnitude + hypot(magnitude, ones_like(magnitude)));
  t = where(turned, where(less(tau, 0), -t, t), zeros_like(t));
  Tensor c = 1 / sqrt(t * t + 1);
  return {c, t * c, conjugated(where(turned, phase(g), ones_like(g)))};
}

// The columns of the pairs (p, q), turned.
std::pair<Tensor, Tensor> turned_columns(const Rotations& by, const Tensor& p, const Tensor& q) {
  Tensor c = as(expand_dims(by.c, -2), p), s = as(expand_dims(by.s, -2), p);
  Tensor other = q * expand_dims(by.e, -2);
  return {c * p - s * other, s * p + c * other};
}

// In a tournament of N columns, the pairs of the next round: the first column stays, and the others
// move around the two halves. After N - 1 rounds each pair has met once, and all are where they
// were.
Tensor next_round(const Tensor& p, const Tensor& q, int dimension) {
  std::int64_t h = p.dim(dimension);
  if (h == 1) return concat({p, q}, dimension);
  auto part = [&](const Tensor& x, std::int64_t from, std::int64_t to) {
    return slice_along(x, dimension, from, to);
  };
  return concat({part(p, 0, 1), part(q, 0, 1), part(p, 1, h - 1), part(q, 1, h), part(p, h - 1, h)},
                dimension);
}

// Matrices divided by their largest magnitudes [..., 1, 1], so that squares do not overflow.
std::pair<Tensor, Tensor> scaled(const Tensor& x) {
  Tensor scale = max(abs(x), {-2, -1}, true);
  scale = where(equal(scale, 0), ones_like(scale), scale);
  return {x / as(scale, x), scale};
}

// Zero, or NaN for matrices whose norm [...] is not finite.
Tensor poison(const Tensor& norm, const Tensor& x) { return as(as_matrices(norm - norm), x); }

std::pair<Tensor, Tensor> halves(const Tensor& x, int dimension) {
  std::int64_t h = x.dim(dimension) / 2;
  return {slice_along(x, dimension, 0, h), slice_along(x, dimension, h, 2 * h)};
}

// Jacobi's methods converge quadratically; in practice after 6 to 12 sweeps.
constexpr std::int64_t kMostSweeps = 30;

// Unit matrices in the dtype and batch of `x`.
Tensor units_for(const Tensor& x, std::int64_t rows, std::int64_t columns) {
  return unit_matrices({x.dtype(), batch_then(x.shape(), {rows, columns})});
}

// Along the last dimension (columns of matrices), in the order of `keys` [..., n].
Tensor in_order(const Tensor& x, const Tensor& order) {
  if (x.rank() == order.rank()) return take_along_axis(x, order, -1);
  return take_along_axis(x, broadcast_to(expand_dims(order, -2), x.shape()), -1);
}

}  // namespace

std::vector<Tensor> lu_by_loops(const Tensor& x) {
  std::int64_t rows = x.dim(-2), columns = x.dim(-1), least = std::min(rows, columns);
  Tensor row = row_numbers(rows), column = column_numbers(columns);
  Carries start{x, zeros(batch_then(x.shape(), {least}), DType::i32),
                iota(DType::i32, batch_then(x.shape(), {rows}), x.rank() - 2),
                ones(batch_then(x.shape(), {}), real_dtype(x.dtype()))};
  return repeated(least, start, [&](const Tensor& k, std::span<const Tensor> carries) {
    const Tensor &a = carries[0], &pivots = carries[1];
    Tensor given = column_of(a, k);
    Tensor size = is_complex(x.dtype()) ? abs(real(given)) + abs(imag(given)) : abs(given);
    size = where(less(row, k), full_like(size, -1), size);
    Tensor pivot = astype(argmax(squeeze(size, -1), -1), DType::i32);
    // Exchanges rows k and `pivot`, and subtracts multiples of row k from those below.
    Tensor at = as_matrices(pivot);
    Tensor upper = row_at(a, pivot), lower = row_of(a, k);
    Tensor swapped = where(equal(row, k), upper, where(equal(row, at), lower, a));
    Tensor own = column_of(swapped, k), divisor = row_of(own, k), zero = zeros_like(own);
    divisor = where(equal(divisor, 0), ones_like(divisor), divisor);
    Tensor below = less(k, row);
    Tensor factors = where(below, own / divisor, zero);
    Tensor next = swapped - factors * where(less(k, column), upper, zeros_like(upper));
    next = where(logical_and(below, equal(column, k)), factors, next);
    Tensor places = iota(DType::i32, pivots.shape(), pivots.rank() - 1);
    Tensor parity = where(equal(pivot, k), carries[3], -carries[3]);
    return Carries{next, where(equal(places, k), expand_dims(pivot, -1), pivots),
                   exchanged(carries[2], k, pivot), parity};
  });
}

Tensor permutation_by_loops(const Tensor& pivots, std::int64_t size) {
  Tensor start = iota(DType::i32, batch_then(pivots.shape(), {size}, 1), pivots.rank() - 1);
  auto step = [&](const Tensor& k, std::span<const Tensor> carries) {
    return Carries{exchanged(carries[0], k, squeeze(column_of(pivots, k), -1))};
  };
  return repeated(pivots.dim(-1), {start}, step)[0];
}

std::vector<Tensor> qr_by_loops(const Tensor& x, bool complete) {
  std::int64_t rows = x.dim(-2), columns = x.dim(-1), least = std::min(rows, columns);
  Tensor row = row_numbers(rows);
  // The reflections I - 2 v adjoint(v) that make x triangular. The vectors have norm 1, or 0.
  Tensor vectors = zeros_like(slice_along(x, -1, 0, least)), places = column_numbers(least);
  Carries made =
      repeated(least, {x, vectors}, [&](const Tensor& k, std::span<const Tensor> carries) {
        const Tensor& r = carries[0];
        Tensor own = column_of(r, k), zero = zeros_like(own);
        own = where(less(row, k), zero, own);
        // Scaled, so that squares neither overflow nor vanish.
        Tensor scale = max(abs(own), -2, true), absent = equal(scale, 0);
        own = own / as(where(absent, ones_like(scale), scale), own);
        Tensor norm = sqrt(sum(squares(own), -2, true));
        Tensor v = own + where(equal(row, k), phase(row_of(own, k)) * as(norm, own), zero);
        Tensor below = any(logical_and(less(k, row), not_equal(own, 0)), -2, true);
        Tensor size = sqrt(sum(squares(v), -2, true));
        v = where(below, v / as(where(equal(size, 0), ones_like(size), size), v), zero);
        Tensor next = r - (v * 2) * matmul(adjoint(v), r);
        return Carries{next, where(equal(places, k), v, carries[1])};
      });
  std::int64_t count = complete ? rows : least;
  Tensor q = repeated(least, {units_for(x, rows, count)},
                      [&](const Tensor& k, std::span<const Tensor> carries) {
                        Tensor v = column_of(made[1], i32(least - 1) - k);
                        return Carries{carries[0] - (v * 2) * matmul(adjoint(v), carries[0])};
                      })[0];
  return {q, triu(slice_along(made[0], -2, 0, count))};
}

std::vector<Tensor> eigh_by_loops(const Tensor& given, bool vectors) {
  auto [x, scale] = scaled(given);
  const DType dtype = x.dtype();
  std::int64_t n = x.dim(-1), odd = n % 2, size = n + odd;
  Tensor lower = tril(x, -1), middle = as(real_part(diagonal(x)), x);
  Tensor a = lower + adjoint(lower) +
             where(eye(n, n, 0, DType::bool_), expand_dims(middle, -1), zeros_like(x));
  // Columns and rows of zeros are not turned.
  if (odd) a = pad_along(pad_along(a, 0, -1, 0, 1), 0, -2, 0, 1);
  Tensor off_diagonal = logical_not(eye(size, size, 0, DType::bool_));
  Tensor norm = sqrt(sum(squares(a), {-2, -1}));
  Tensor limit = norm * number(epsilon_of(x.dtype()) * std::sqrt(double(n)), x.dtype());
  auto goes_on = [&](const Tensor& now) {
    Tensor off = sqrt(sum(where(off_diagonal, squares(now), number(0, dtype)), {-2, -1}));
    return any(greater(off, limit));
  };
  auto round = [&](const Tensor&, std::span<const Tensor> carries) {
    auto [p, q] = halves(carries[0], -1);
    Tensor g = diagonal(halves(q, -2).first);
    Rotations by = rotations(real_part(diagonal(halves(p, -2).first)),
                             real_part(diagonal(halves(q, -2).second)), g, not_equal(g, 0));
    auto [left, right] = turned_columns(by, p, q);
    Tensor columns = next_round(left, right, -1);
    // The same for the rows: the adjoint of the columns of the adjoint.
    auto [upper, below] = halves(columns, -2);
    Tensor c = as(expand_dims(by.c, -1), upper), s = as(expand_dims(by.s, -1), upper);
    Tensor other = below * expand_dims(conjugated(by.e), -1);
    Tensor next = next_round(c * upper - s * other, s * upper + c * other, -2);
    auto [p_of_v, q_of_v] = halves(carries[1], -1);
    auto [p_next, q_next] = turned_columns(by, p_of_v, q_of_v);
    return Carries{next, next_round(p_next, q_next, -1)};
  };
  Carries made = while_tensors(
      [&](std::span<const Tensor> c) {
        return Carries{logical_and(less(c[0], i32(kMostSweeps)), goes_on(c[1]))};
      },
      [&](std::span<const Tensor> c) {
        Carries next = repeated(size - 1, {c[1], c[2]}, round);
        return Carries{c[0] + 1, next[0], next[1]};
      },
      {i32(0), a, units_for(a, size, size)});
  Tensor values = slice_along(real_part(diagonal(made[1])), -1, 0, n), order = argsort(values);
  values = in_order(values, order) * squeeze(scale, -1) + expand_dims(norm - norm, -1);
  std::vector<Tensor> results{values};
  if (vectors)
    results.push_back(in_order(slice_along(slice_along(made[2], -1, 0, n), -2, 0, n), order) +
                      poison(norm, x));
  return results;
}

namespace {

// The singular value decomposition of matrices with at least as many rows as columns.
std::vector<Tensor> tall_svd(const Tensor& given, bool vectors) {
  auto [x, scale] = scaled(given);
  const DType dtype = x.dtype();
  std::int64_t n = x.dim(-1), odd = n % 2, size = n + odd;
  auto [q, r] = qr(x);
  // r = v s adjoint(u): the columns of its adjoint are made orthogonal.
  Tensor g = adjoint(r);
  if (odd) g = pad_along(g, 0, -1, 0, 1);
  const double epsilon = epsilon_of(x.dtype());
  Tensor norm = sqrt(sum(squares(g), {-2, -1})), least = norm * number(epsilon, x.dtype());
  Tensor limit = number(epsilon * std::sqrt(double(n)), x.dtype());
  auto round = [&](const Tensor&, std::span<const Tensor> carries) {
    auto [p, q_half] = halves(carries[0], -1);
    Tensor a = sum(squares(p), -2), b = sum(squares(q_half), -2);
    Tensor gram = sum(conjugated(p) * q_half, -2);
    Tensor sizes = sqrt(a) * sqrt(b);
    // Columns of the size of rounding errors have no direction.
    Tensor small = less_equal(minimum(sqrt(a), sqrt(b)), expand_dims(least, -1));
    Tensor cosine = where(small, zeros_like(sizes),
                          abs(gram) / where(equal(sizes, 0), ones_like(sizes), sizes));
    Tensor turned = not_equal(gram, 0);
    Rotations by = rotations(a, b, gram, turned);
    auto [p_next, q_next] = turned_columns(by, p, q_half);
    auto [p_of_v, q_of_v] = halves(carries[1], -1);
    auto [left, right] = turned_columns(by, p_of_v, q_of_v);
    Tensor worst = maximum(carries[2], max(cosine));
    return Carries{next_round(p_next, q_next, -1), next_round(left, right, -1), worst};
  };
  Carries made = while_tensors(
      [&](std::span<const Tensor> c) {
        return Carries{logical_and(less(c[0], i32(kMostSweeps)), greater(c[3], limit))};
      },
      [&](std::span<const Tensor> c) {
        Carries next = repeated(size - 1, {c[1], c[2], number(0, dtype)}, round);
        return Carries{c[0] + 1, next[0], next[1], next[2]};
      },
      {i32(0), g, units_for(g, size, size), number(1, x.dtype())});
  Tensor columns = slice_along(made[1], -1, 0, n);
  Tensor values = sqrt(sum(squares(columns), -2)), order = argsort(values, -1, true);
  values = in_order(values, order) * squeeze(scale, -1) + expand_dims(norm - norm, -1);
  if (!vectors) return {values};
  // The directions of the columns, and further orthogonal ones for those without: R is diagonal.
  auto [u, diagonal_r] = qr(in_order(columns, order));
  u = u * expand_dims(phase(diagonal(diagonal_r)), -2);
  Tensor v = in_order(slice_along(slice_along(made[2], -1, 0, n), -2, 0, n), order);
  Tensor nan = poison(norm, x);
  return {matmul(q, v) + nan, values, adjoint(u) + nan};
}

}  // namespace

std::vector<Tensor> svd_by_loops(const Tensor& x, bool full_matrices, bool vectors) {
  std::int64_t rows = x.dim(-2), columns = x.dim(-1);
  if (rows < columns) {
    std::vector<Tensor> made = svd_by_loops(adjoint(x), full_matrices, vectors);
    if (!vectors) return made;
    return {adjoint(made[2]), made[1], adjoint(made[0])};
  }
  std::vector<Tensor> made = tall_svd(x, vectors);
  if (vectors && full_matrices && rows > columns)
    made[0] = concat({made[0], slice_along(qr(made[0], true).q, -1, columns, rows)}, -1);
  return made;
}

std::vector<Tensor> schur_by_loops(const Tensor& x) {
  std::int64_t n = x.dim(-1);
  Tensor row = row_numbers(n), column = column_numbers(n), one = eye(n, n, 0, x.dtype());
  Tensor zero = zeros({}, x.dtype()), norm = sqrt(sum(squares(x), {-2, -1}));
  Tensor limit = norm * number(epsilon_of(x.dtype()), x.dtype());
  // Element [i, j] of each matrix, for numbers i and j [...] of the batch.
  auto at = [&](const Tensor& t, const Tensor& i, const Tensor& j) {
    Tensor here = logical_and(equal(row, as_matrices(i)), equal(column, as_matrices(j)));
    return sum(where(here, t, zero), {-2, -1});
  };
  // Row `last` [...] of the active block converges first; then the block is one smaller.
  Carries made = while_tensors(
      [&](std::span<const Tensor> c) {
        return Carries{logical_and(less(c[0], i32(60 * n)), any(greater(c[1], 0)))};
      },
      [&](std::span<const Tensor> c) {
        const Tensor &last = c[1], &t = c[2], &z = c[3];
        Tensor before = maximum(last - 1, zeros_like(last));
        // The eigenvalue of the last 2 x 2 block that is nearest to its last element.
        Tensor a = at(t, before, before), b = at(t, before, last), d = at(t, last, last);
        Tensor half = (a - d) * element_wise::literal(0.5, a), product = b * at(t, last, before);
        Tensor root = sqrt(half * half + product);
        Tensor agrees = greater_equal(real(conj(half) * root), number(0, x.dtype()));
        Tensor sum_of = half + where(agrees, root, -root);
        Tensor none = equal(sum_of, zero);
        Tensor shift = d - where(none, zero, product / where(none, ones_like(sum_of), sum_of));
        // Now and then another shift, so that symmetric cases end.
        Tensor odd = equal(remainder(c[0], 11), 10);
        shift = where(odd, d + astype(abs(product), x.dtype()), shift);
        Tensor end = as_matrices(last);
        Tensor active = logical_and(less_equal(row, end), less_equal(column, end));
        Tensor shifted = t - one * as_matrices(shift);
        Tensor q = qr(where(active, shifted, one)).q;
        Tensor next = matmul(adjoint(q), matmul(t, q));
        Tensor beside = logical_and(equal(row, end), less(column, end));
        Tensor off = sqrt(sum(where(beside, squares(next), number(0, x.dtype())), {-2, -1}));
        Tensor done = less_equal(off, limit);
        next = where(logical_and(beside, as_matrices(done)), zero, next);
        Tensor left = where(done, before, last);
        return Carries{c[0] + 1, left, next, matmul(z, q)};
      },
      {i32(0), full(batch_then(x.shape(), {}), static_cast<int>(n - 1)), x, units_for(x, n, n)});
  // Rows that did not converge, and matrices that are not finite, have no Schur form.
  Tensor ok = logical_and(less_equal(made[1], 0), isfinite(norm));
  return {or_nan(ok, triu(made[2])), or_nan(ok, made[3])};
}

std::vector<Tensor> eig_by_loops(const Tensor& given, bool vectors) {
  Tensor x = astype(given, complex_dtype(given.dtype()));
  std::int64_t n = x.dim(-1);
  Carries form = schur_by_loops(x);
  const Tensor& t = form[0];
  Tensor values = diagonal(t);
  if (!vectors) return {values};
  Tensor row = row_numbers(n), column = column_numbers(n), zero = zeros({}, x.dtype());
  Tensor on_diagonal = equal(row, column);
  // Equal eigenvalues are moved apart by a rounding error.
  Tensor least = max(abs(t), {-2, -1}, true) * number(epsilon_of(x.dtype()), x.dtype());
  least = where(equal(least, 0), ones_like(least), least);
  Tensor columns =
      repeated(n, {zeros_like(t)}, [&](const Tensor& k, std::span<const Tensor> carries) {
        Tensor own =
            sum(where(equal(column, k), where(on_diagonal, t, zero), zero), {-2, -1}, true);
        Tensor gaps = where(on_diagonal, t - own, t);
        gaps = where(logical_and(on_diagonal, less(abs(gaps), least)), as(least, gaps), gaps);
        Tensor inside = logical_and(less(row, k), less(column, k));
        Tensor system = where(inside, gaps, where(on_diagonal, ones_like(t), zero));
        Tensor side = -sum(where(equal(column, k), t, zero), -1, true);
        side = where(less(row, k), side, zero);
        Tensor v = triangular_solve(system, side, {.lower = false});
        v = where(equal(row, k), ones_like(v), v);
        return Carries{where(equal(column, k), v, carries[0])};
      })[0];
  Tensor v = matmul(form[1], columns);
  return {values, v / as(sqrt(sum(squares(v), -2, true)), v)};
}

}  // namespace meshard::internal
