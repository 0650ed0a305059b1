#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "meshard/autodiff/grad.h"
#include "meshard/linalg/distributed.h"
#include "meshard/linalg/linalg_testutil.h"

namespace meshard::linalg::distributed {
namespace {

using DistributedCholesky = OnPlugin;

TEST_F(DistributedCholesky, CholeskyOfAnySize) {
  struct Case {
    std::int64_t size, rows, columns, block;
    DType dtype;
  };
  for (const Case& c : {Case{20, 2, 4, 0, DType::f32}, Case{13, 2, 2, 2, DType::f64},
                        Case{9, 2, 1, 0, DType::c64}, Case{1, 1, 1, 0, DType::f32}}) {
    SCOPED_TRACE(cat(c.size, " on ", c.rows, "x", c.columns, " ", c.dtype));
    MatrixGrid grid(grid_mesh(c.rows, c.columns), "rows", "columns");
    grid.block = c.block;
    Tensor a = random_matrix(c.size, c.size, c.dtype);
    a = on_host(matmul(a, adjoint_of(a)) + eye(c.size));
    Tensor factor = cholesky(a, grid);
    EXPECT_EQ(factor.dtype(), c.dtype);
    Tensor l = on_host(factor);
    EXPECT_LT(error_of(matmul(l, adjoint_of(l)) - a, a), kMost);
    EXPECT_EQ(norm_of(triu(l, 1)), 0);
    // The upper triangle is not read.
    Tensor lower = cholesky(on_host(tril(a)), grid);
    EXPECT_EQ(norm_of(on_host(lower) - l), 0);
  }
}

TEST_F(DistributedCholesky, CholeskyOfAnIndefiniteMatrixIsNan) {
  MatrixGrid grid(grid_mesh(2, 2), "rows", "columns");
  Tensor l = on_host(cholesky(on_host(-eye(8)), grid));
  EXPECT_TRUE(std::isnan(index(l, {0, 0}).item<float>()));
}

TEST_F(DistributedCholesky, CholeskysDerivative) {
  MatrixGrid grid(grid_mesh(2, 2), "rows", "columns");
  Tensor a = random_matrix(6, 6, DType::f64), weight = random_matrix(6, 6, DType::f64);
  a = on_host(matmul(a, adjoint_of(a)) + eye(6));
  // Symmetric changes, which both functions read alike.
  auto loss = [&](auto factor) {
    return [=](const Tensor& x) { return sum(factor((x + matrix_transpose(x)) * 0.5) * weight); };
  };
  Tensor one = grad(loss([](const Tensor& x) { return cholesky(x); }))(a);
  Tensor spread = grad(loss([&](const Tensor& x) { return cholesky(x, grid); }))(a);
  EXPECT_LT(norm_of(on_host(spread) - one), 1e-10 * norm_of(one));
}

TEST_F(DistributedCholesky, Errors) {
  Mesh mesh = grid_mesh(2, 2);
  MatrixGrid grid(mesh, "rows", "columns"), missing(mesh, "rows", "cols"),
      twice(mesh, "rows", "rows");
  auto invalid = ErrorCode::kInvalidArgument;
  auto expect = [&](const std::function<void()>& call, std::initializer_list<std::string> words,
                    ErrorCode code) { EXPECT_TRUE(throws_error(call, code, words)); };
  Tensor wide = ones({4, 6}), square = ones({4, 4});
  expect([&] { cholesky(wide, grid); }, {"cholesky_test.cc:", "cholesky", "not square", "f32[4,6]"},
         invalid);
  expect([&] { eigh(ones({4}), grid); }, {"eigh", "f32[4]"}, invalid);
  expect([&] { qr(complex(square, square), grid); }, {"qr", "complex"}, invalid);
  expect([&] { cholesky(square, missing); }, {"\"cols\"", "mesh<rows=2, columns=2>"}, invalid);
  expect([&] { cholesky(square, twice); }, {"both", "\"rows\""}, invalid);
  grid.block = -1;
  expect([&] { cholesky(square, grid); }, {"block -1"}, invalid);
  grid.block = 0;
  expect([&] { grad([&](const Tensor& x) { return sum(qr(x, grid).r); })(square); },
         {"qr", "no derivative"}, ErrorCode::kUnimplemented);
}

}  // namespace
}  // namespace meshard::linalg::distributed
