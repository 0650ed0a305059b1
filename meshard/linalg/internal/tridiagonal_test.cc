#include "meshard/linalg/internal/tridiagonal.h"

#include <cmath>

#include "meshard/linalg/linalg_testutil.h"

namespace meshard::linalg::distributed::internal {
namespace {

using TridiagonalMatrix = OnPlugin;

// The eigenvalues of a path of n nodes: 2 cos(k pi / (n + 1)).
TEST_F(TridiagonalMatrix, OfAPath) {
  const std::int64_t n = 12;
  Tensor beside = where(iota(DType::i32, {n}, 0) < n - 1, 1.0, 0.0);
  auto solve = jit([&](const Tensor& diagonal, const Tensor& off, const Tensor& positions) {
    Tridiagonal matrix = tridiagonal(diagonal, off);
    Tensor values = eigenvalues_at(matrix, positions);
    return std::pair(values, eigenvectors_for(matrix, values, positions, DType::f64));
  });
  Tensor positions = from_host(std::vector<std::int32_t>{11, 0, 5}, {3});
  auto [values, vectors] = solve(zeros({n}, DType::f64), astype(beside, DType::f64), positions);
  std::vector<double> found = values.to_vector<double>();
  const int k[] = {1, 12, 7};
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(found[i], 2 * std::cos(k[i] * M_PI / 13), 1e-14);
  // sin(j k pi / (n + 1)), up to sign and length.
  std::vector<double> v = vectors.to_vector<double>();
  for (std::size_t i = 0; i < 3; ++i) {
    double product = 0, squares = 0;
    for (std::size_t j = 0; j < 12; ++j) {
      const double exact = std::sin(static_cast<double>(j + 1) * k[i] * M_PI / 13);
      product += exact * v[j * 3 + i];
      squares += exact * exact;
    }
    EXPECT_NEAR(product * product / squares, 1, 1e-13);
  }
}

// All eigenvalues are equal, so that any independent vectors are right.
TEST_F(TridiagonalMatrix, VectorsOfAClusterAreIndependent) {
  const std::int64_t n = 8;
  Tensor diagonal = ones({n}, DType::f64) * 3, none = zeros({n}, DType::f64);
  Tridiagonal matrix = tridiagonal(diagonal, none);
  Tensor positions = iota(DType::i32, {n}, 0);
  Tensor vectors =
      eigenvectors_for(matrix, eigenvalues_at(matrix, positions), positions, DType::f64);
  Tensor r = qr(on_host(vectors)).r;
  for (double each : abs(meshard::diagonal(r)).to_vector<double>()) EXPECT_GT(each, 1e-3);
}

}  // namespace
}  // namespace meshard::linalg::distributed::internal
