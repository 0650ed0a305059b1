#include "meshard/linalg/internal/tridiagonal.h"

#include <limits>
#include <tuple>
#include <utility>

#include "meshard/ops/all.h"
#include "meshard/ops/definition/operand.h"

namespace meshard::linalg::distributed::internal {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kSmallest = std::numeric_limits<double>::min();
// Each halves the interval of the bounds, which is twice the norm at most.
constexpr std::int64_t kBisections = 55;
// Inverse iteration is done at both sides of an eigenvalue, at this distance times the norm: the
// product of both, 1 / ((T - lambda)^2 - distance^2), is about the same for all eigenvalues that
// differ by rounding errors, so that vectors of a cluster stay as independent as they begin.
constexpr double kDistance = 16 * kEpsilon;
// Vectors that are computed together: each step is one operation on that many numbers, and the
// factors of all steps are kept.
constexpr std::int64_t kTogether = 32;
// Steps of a sequential loop that are compiled as one.
constexpr std::int64_t kUnrolled = 4;

// Elements (i - 1, i); the first one is 0.
Tensor before(const Tensor& beside) {
  return pad(slice(beside, {0}, {beside.dim(0) - 1}), 0, {1}, {0});
}

// Numbers in [-1, 1) that look random, by the finalizer of MurmurHash3 (A. Appleby, public domain),
// the same on every platform. [rows, k]
Tensor scattered_numbers(std::int64_t rows, const Tensor& positions) {
  Tensor row = expand_dims(iota(DType::u32, {rows}, 0), 1);
  Tensor hash =
      row * 2654435761U + expand_dims(astype(positions, DType::u32), 0) * 2246822519U + 1U;
  hash = (hash ^ shift_right_logical(hash, 16)) * 2246822507U;
  hash = (hash ^ shift_right_logical(hash, 13)) * 3266489909U;
  hash = hash ^ shift_right_logical(hash, 16);
  return astype(hash, DType::f64) * (1.0 / 2147483648.0) - 1.0;
}

// The largest divisor of a number up to a bound.
std::int64_t divisor_of(std::int64_t number, std::int64_t bound) {
  std::int64_t found = bound < number ? bound : number;
  while (number % found != 0) --found;
  return found;
}

// One solution of (T - lambda I) x = right for each lambda, up to a factor. [n, k]
Tensor solved(const Tridiagonal& matrix, const Tensor& lambda, const Tensor& right,
              const Tensor& smallest_pivot) {
  const std::int64_t n = matrix.diagonal.dim(0);
  const Tensor &d = matrix.diagonal, &e = matrix.beside;
  auto away_from_zero = [&](const Tensor& pivot) {
    return where(abs(pivot) < smallest_pivot, where(pivot < 0, -smallest_pivot, smallest_pivot),
                 pivot);
  };
  // Rows of the factor U, and the right side that belongs to them, from the first row on.
  using Row = std::tuple<Tensor, Tensor, Tensor>;  // pivot, beside it, right side
  using Following = std::tuple<Tensor, Tensor, Tensor, Tensor>;
  auto eliminate = [&](const Row& row, const Following& next) {
    const auto& [p, s, y] = row;
    const auto& [below, diagonal, beside, b] = next;
    Tensor own = diagonal - lambda;
    Tensor swapped = abs(below) > abs(p);
    Tensor pivot = where(swapped, below, away_from_zero(p));
    Tensor factor = where(swapped, p, below) / pivot;
    Tensor u1 = where(swapped, own, s);
    Tensor u2 = where(swapped, beside, 0);
    Tensor kept = where(swapped, b, y);
    Row left{where(swapped, s, own) - factor * u1, where(swapped, -factor * beside, beside),
             where(swapped, y, b) - factor * kept};
    return std::pair(left, std::tuple(pivot, u1, u2, kept));
  };
  auto first_of = [](const Tensor& x) { return index(x, {0}); };
  auto from_second = [](const Tensor& x) { return slice_along(x, 0, 1, x.dim(0)); };
  Row first{first_of(d) - lambda, first_of(e) + lambda * 0, first_of(right)};
  Following following{slice_along(e, 0, 0, n - 1), from_second(d), from_second(e),
                      from_second(right)};
  auto [last, factor] = scan(eliminate, first, following, {.unroll = kUnrolled});
  using Solution = std::pair<Tensor, Tensor>;  // of the next row and the one after it
  auto substitute = [](const Solution& known,
                       const std::tuple<Tensor, Tensor, Tensor, Tensor>& row) {
    const auto& [pivot, u1, u2, kept] = row;
    Tensor x = (kept - u1 * known.first - u2 * known.second) / pivot;
    return std::pair(Solution(x, known.first), x);
  };
  Tensor bottom = std::get<2>(last) / away_from_zero(std::get<0>(last));
  Tensor above =
      scan(substitute, Solution(bottom, bottom * 0), factor, {.reverse = true, .unroll = kUnrolled})
          .second;
  return concat({above, expand_dims(bottom, 0)});
}

Tensor with_length_1(const Tensor& x) {
  Tensor scaled = x / max(abs(x), 0, true);
  return scaled / sqrt(sum(scaled * scaled, 0, true));
}

}  // namespace

Tridiagonal tridiagonal(const Tensor& diagonal, const Tensor& beside) {
  Tensor radius = abs(beside) + abs(before(beside));
  Tensor low = min(diagonal - radius), high = max(diagonal + radius);
  Tensor margin = maximum(abs(low), abs(high)) * (4 * kEpsilon) + kSmallest;
  return {diagonal, beside, low - margin, high + margin};
}

Tensor eigenvalues_at(const Tridiagonal& matrix, const Tensor& positions) {
  Tensor squares = before(matrix.beside * matrix.beside);
  Tensor smallest = maximum(max(squares), ones_like(matrix.low)) * kSmallest;
  // The number of eigenvalues below x: of negative pivots of T - x I.
  auto count_below = [&](const Tensor& x) {
    auto pivot = [&](const std::pair<Tensor, Tensor>& state, const std::pair<Tensor, Tensor>& row) {
      Tensor q = row.first - x - row.second / state.first;
      q = where(abs(q) < smallest, -smallest, q);
      return std::pair(std::pair(q, state.second + astype(q < 0, DType::i32)), std::tuple<>());
    };
    return scan(pivot, std::pair(x * 0 + 1, positions * 0), std::pair(matrix.diagonal, squares),
                {.unroll = kUnrolled})
        .first.second;
  };
  auto halve = [&](const Tensor&, const std::pair<Tensor, Tensor>& interval) {
    Tensor middle = (interval.first + interval.second) * 0.5;
    Tensor is_below = count_below(middle) > positions;
    return std::pair(where(is_below, interval.first, middle),
                     where(is_below, middle, interval.second));
  };
  Tensor zero = astype(positions * 0, DType::f64);
  auto [low, high] =
      fori_loop(0, kBisections, halve, std::pair(zero + matrix.low, zero + matrix.high));
  return (low + high) * 0.5;
}

Tensor eigenvectors_for(const Tridiagonal& matrix, const Tensor& eigenvalues,
                        const Tensor& positions, DType dtype) {
  const std::int64_t n = matrix.diagonal.dim(0), count = eigenvalues.dim(0);
  const std::int64_t together = divisor_of(count, kTogether);
  Tensor norm = maximum(abs(matrix.low), abs(matrix.high));
  Tensor smallest_pivot = norm * kEpsilon + kSmallest, distance = norm * kDistance;
  auto some = [&](const std::pair<Tensor, Tensor>& chunk) {
    Tensor x = scattered_numbers(n, chunk.second);
    x = with_length_1(solved(matrix, chunk.first + distance, x, smallest_pivot));
    x = with_length_1(solved(matrix, chunk.first - distance, x, smallest_pivot));
    return astype(x, dtype);
  };
  const Shape chunks{count / together, together};
  Tensor all = map(some, std::pair(reshape(eigenvalues, chunks), reshape(positions, chunks)));
  return reshape(permute_dims(all, {1, 0, 2}), {n, count});
}

}  // namespace meshard::linalg::distributed::internal
