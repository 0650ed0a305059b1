#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "meshard/autodiff/grad.h"
#include "meshard/linalg/distributed.h"
#include "meshard/linalg/linalg_testutil.h"

namespace meshard::linalg::distributed {
namespace {

using DistributedEigh = OnPlugin;

void expect_eigenvectors(const Tensor& a, const Eigh& found) {
  Tensor w = on_host(found.eigenvalues), v = on_host(found.eigenvectors);
  const std::int64_t n = a.dim(0);
  EXPECT_LT(error_of(matmul(a, v) - v * w,
                     where(norm_of(a) == 0 ? ones({}) > 0 : ones({}) < 0, ones_like(a), a)),
            kMost);
  EXPECT_LT(error_of(matmul(matrix_transpose(v), v) - eye(n), astype(eye(n), a.dtype())), kMost);
  std::vector<double> values = astype(w, DType::f64).to_vector<double>();
  EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
}

TEST_F(DistributedEigh, EigenvaluesAndEigenvectors) {
  MatrixGrid grid(grid_mesh(2, 2), "rows", "columns");
  auto find = jit([&](const Tensor& x) { return eigh(x, grid); });
  Tensor random = random_matrix(10, 10, DType::f64);
  Tensor symmetric = on_host((random + matrix_transpose(random)) * 1e-200);
  Tensor thin = slice(random, {0, 0}, {10, 2});
  Tensor steps =
      where(equal(iota(DType::i32, {10, 10}, 0), iota(DType::i32, {10, 10}, 1) + 1), 1.0, 0.0);
  for (const auto& [name, a] : {std::pair<const char*, Tensor>{"random", symmetric},
                                {"of rank 2", matmul(thin, matrix_transpose(thin))},
                                {"the identity", astype(eye(10), DType::f64)},
                                {"zeros", zeros({10, 10}, DType::f64)},
                                {"a path", astype(steps + matrix_transpose(steps), DType::f64)}}) {
    SCOPED_TRACE(name);
    Tensor host = on_host(a);
    expect_eigenvectors(host, find(host));
  }
  Eigh path = find(on_host(astype(steps + matrix_transpose(steps), DType::f64)));
  std::vector<double> values = path.eigenvalues.to_vector<double>();
  for (int k = 1; k <= 10; ++k)  // of a path of n nodes: 2 cos(k pi / (n + 1))
    EXPECT_NEAR(values[static_cast<std::size_t>(10 - k)], 2 * std::cos(k * M_PI / 11), 1e-13);
}

TEST_F(DistributedEigh, EighOfOtherGridsAndDtypes) {
  MatrixGrid grid(grid_mesh(1, 4), "rows", "columns");
  grid.block = 2;
  Tensor random = random_matrix(13, 13);
  Tensor a = on_host(random + matrix_transpose(random));
  expect_eigenvectors(a, eigh(a, grid));
}

TEST_F(DistributedEigh, EighsDerivative) {
  MatrixGrid grid(grid_mesh(1, 1), "rows", "columns");
  Tensor random = random_matrix(5, 5, DType::f64), weight = random_matrix(5, 5, DType::f64);
  Tensor a = on_host(random + matrix_transpose(random));
  // Squares, because the signs of eigenvectors are arbitrary.
  auto loss = [&](auto factors) {
    return [=](const Tensor& x) {
      auto [w, v] = factors((x + matrix_transpose(x)) * 0.5);
      return sum(square(v) * weight) + sum(w * w * w);
    };
  };
  Tensor one = grad(loss([](const Tensor& x) { return eigh(x); }))(a);
  Tensor spread = grad(loss([&](const Tensor& x) { return eigh(x, grid); }))(a);
  EXPECT_LT(norm_of(on_host(spread) - one), 1e-6 * norm_of(one));
}

}  // namespace
}  // namespace meshard::linalg::distributed
