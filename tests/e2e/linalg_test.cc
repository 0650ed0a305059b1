// Decompositions on devices: by LAPACK and by loops, whole and split.
#include "meshard/ops/linalg.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "meshard/meshard.h"
#include "meshard/runtime/plugin_testutil.h"

namespace meshard {
namespace {

class Linalg : public OnPlugin {};

Tensor adjoint_of(const Tensor& x) {
  return is_complex(x.dtype()) ? conj(matrix_transpose(x)) : matrix_transpose(x);
}

Tensor columns_by(const Tensor& x, const Tensor& numbers) { return x * expand_dims(numbers, -2); }

Tensor random_batch(std::int64_t rows, std::int64_t columns, DType dtype) {
  auto part = [&](int seed) {
    return random::normal(random::key(seed), {4, rows, columns}, real_dtype(dtype));
  };
  return is_complex(dtype) ? complex(part(1), part(2)) : part(1);
}

// The residuals of what defines each decomposition, in units of the dtype's precision.
std::vector<double> residuals(const Tensor& matrices) {
  double epsilon = real_dtype(matrices.dtype()) == DType::f64 ? 0x1p-52 : 0x1p-23;
  auto all = jit([](Tensor x) {
    std::vector<Tensor> errors;
    auto check = [&](const Tensor& a, const Tensor& b) {
      errors.push_back(astype(max(abs(a - b)), DType::f64));
    };
    auto check_unitary = [&](const Tensor& q) {
      check(matmul(adjoint_of(q), q), eye(q.dim(-1), std::nullopt, 0, q.dtype()));
    };
    for (bool whole : {false, true}) {
      auto [q, r] = qr(x, whole);
      check(matmul(q, r), x), check_unitary(q), check(tril(r, -1), zeros_like(r));
      auto [u, s, vh] = linalg::svd(x, whole);
      std::int64_t least = s.dim(-1);
      Tensor left = index(u, {ellipsis, range(0, least)}),
             right = index(vh, {ellipsis, range(0, least), meshard::whole});
      check(matmul(columns_by(left, s), right), x);
      check_unitary(u), check_unitary(adjoint_of(vh)), check(linalg::svdvals(x), s);
    }
    auto [p, l, u] = linalg::lu(x);
    check(matmul(matmul(p, l), u), x), check(triu(l, 1), zeros_like(l));
    if (x.dim(-1) != x.dim(-2)) return stack(errors);
    Tensor unit = eye(x.dim(-1), std::nullopt, 0, x.dtype()), h = x + adjoint_of(x);
    auto [w, v] = eigh(h);
    check(matmul(columns_by(v, w), adjoint_of(v)), h), check_unitary(v), check(eigvalsh(h), w);
    Tensor regular = x + unit * 6;
    check(matmul(regular, inv(regular)), unit);
    auto [of_l, pivots] = linalg::lu_factor(regular);
    check(linalg::lu_solve(of_l, pivots, x), solve(regular, x));
    auto [values, vectors] = linalg::eig(x);
    check(matmul(x, vectors), columns_by(vectors, values));
    auto [t, z] = linalg::schur(x, true);
    check(matmul(matmul(z, t), adjoint_of(z)), x), check_unitary(z);
    check(tril(t, -1), zeros_like(t));
    Tensor root = linalg::sqrtm(regular);
    check(matmul(root, root), regular);
    check(linalg::expm(linalg::logm(regular)) / 8, regular / 8);
    return stack(errors);
  });
  std::vector<double> found = all(matrices).to_vector<double>();
  for (double& each : found) each /= epsilon;
  return found;
}

// Elements are about 1, so that residuals of small matrices are a few units of precision.
const auto kSmall = testing::Each(testing::Le(400.0));

TEST_F(Linalg, ByLapackAndByLoops) {
  for (const char* quirks : {"", "-lapack-calls"}) {
    ::setenv("MESHARD_QUIRKS", quirks, 1);
    restart_runtime();
    EXPECT_THAT(residuals(random_batch(5, 5, DType::c128)), kSmall) << quirks;
    EXPECT_THAT(residuals(random_batch(6, 4, DType::f64)), kSmall) << quirks;
    EXPECT_THAT(residuals(random_batch(3, 6, DType::f32)), kSmall) << quirks;
  }
  ::unsetenv("MESHARD_QUIRKS");
  restart_runtime();
}

TEST_F(Linalg, SplitBatchesStayWhereTheyAre) {
  Mesh mesh({{"x", 4}, {"y", 2}});
  Tensor whole = random_batch(4, 4, DType::f32), split = mark_sharding(whole, mesh, P("x"));
  auto all = jit([](Tensor x) {
    Tensor h = x + matrix_transpose(x);
    return std::tuple(eigvalsh(h), linalg::svdvals(x), qr(x).r, inv(x), det(x), linalg::expm(x));
  });
  sync(all(split));
  EXPECT_TRUE(explain(all).groups().empty()) << explain(all).to_string();
  auto slope = jit(grad([](Tensor x) { return sum(square(inv(x))) + sum(linalg::svdvals(x)); }));
  Tensor of_split = slope(split);
  EXPECT_TRUE(explain(slope).groups().empty()) << explain(slope).to_string();
  Tensor of_whole = slope(whole);
  Tensor difference = max(abs(of_split - of_whole)) / max(abs(of_whole));
  EXPECT_LT(difference.item<float>(), 1e-4);
}

TEST_F(Linalg, MatricesThatAreNotFiniteGiveNanAlone) {
  for (const char* quirks : {"", "-lapack-calls"}) {
    ::setenv("MESHARD_QUIRKS", quirks, 1);
    restart_runtime();
    Tensor x = random_batch(3, 3, DType::f64) + from_host<double>({0, NAN, 0, 0}, {4, 1, 1});
    auto found = jit([](Tensor a) {
      return std::vector{max(abs(linalg::svdvals(a)), -1), max(abs(eigvalsh(a)), -1),
                         max(abs(linalg::eigvals(a)), -1),
                         max(abs(linalg::schur(a, true).t), {-2, -1})};
    })(x);
    for (const Tensor& sizes : found)
      EXPECT_EQ(isnan(sizes).to_vector<bool>(), (std::vector<bool>{false, true, false, false}))
          << quirks;
  }
  ::unsetenv("MESHARD_QUIRKS");
  restart_runtime();
}

}  // namespace
}  // namespace meshard
