#include "meshard/optim/matrix_optimizers.h"

#include <gmock/gmock.h>

#include <cmath>

#include "meshard/ops/all.h"
#include "meshard/optim/optim_testutil.h"
#include "tests/support/matchers.h"

namespace meshard::optim {
namespace {

using MatrixOptimizers = OnPlugin;

using Matrix = std::vector<std::vector<double>>;

Matrix times(const Matrix& a, const Matrix& b) {
  Matrix out(a.size(), std::vector<double>(b[0].size()));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t k = 0; k < b.size(); ++k)
      for (std::size_t j = 0; j < b[0].size(); ++j) out[i][j] += a[i][k] * b[k][j];
  return out;
}

Matrix transposed(const Matrix& a) {
  Matrix out(a[0].size(), std::vector<double>(a.size()));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a[0].size(); ++j) out[j][i] = a[i][j];
  return out;
}

// h^-1 by Gauss-Jordan elimination of a positive matrix.
Matrix inverse(Matrix h) {
  std::size_t n = h.size();
  Matrix out(n, std::vector<double>(n));
  for (std::size_t i = 0; i < n; ++i) out[i][i] = 1;
  for (std::size_t c = 0; c < n; ++c) {
    double pivot = h[c][c];
    for (std::size_t j = 0; j < n; ++j) {
      h[c][j] /= pivot;
      out[c][j] /= pivot;
    }
    for (std::size_t r = 0; r < n; ++r) {
      if (r == c) continue;
      double factor = h[r][c];
      for (std::size_t j = 0; j < n; ++j) {
        h[r][j] -= factor * h[c][j];
        out[r][j] -= factor * out[c][j];
      }
    }
  }
  return out;
}

// The square root by the iteration of Denman and Beavers.
Matrix root(const Matrix& h) {
  Matrix y = h, z(h.size(), std::vector<double>(h.size()));
  for (std::size_t i = 0; i < h.size(); ++i) z[i][i] = 1;
  for (int k = 0; k < 60; ++k) {
    Matrix y_inverse = inverse(y), z_inverse = inverse(z);
    for (std::size_t i = 0; i < h.size(); ++i)
      for (std::size_t j = 0; j < h.size(); ++j) {
        y[i][j] = (y[i][j] + z_inverse[i][j]) / 2;
        z[i][j] = (z[i][j] + y_inverse[i][j]) / 2;
      }
  }
  return y;
}

// Shampoo's steps of the weight [4, 2] of optim_testutil.h in double; roots without eigenvalues.
Matrix shampoo_in_double(Matrix w, double rate, double epsilon, int steps) {
  Matrix left(4, std::vector<double>(4)), right(2, std::vector<double>(2));
  for (std::size_t i = 0; i < 4; ++i) left[i][i] = epsilon;
  for (std::size_t i = 0; i < 2; ++i) right[i][i] = epsilon;
  for (int k = 1; k <= steps; ++k) {
    std::vector<double> numbers = numbers_of(gradients_of(k));
    Matrix g(4, std::vector<double>(2));
    for (std::size_t i = 0; i < 8; ++i) g[i / 2][i % 2] = numbers[i];
    Matrix add_left = times(g, transposed(g)), add_right = times(transposed(g), g);
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = 0; j < 4; ++j) left[i][j] += add_left[i][j];
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t j = 0; j < 2; ++j) right[i][j] += add_right[i][j];
    Matrix change = times(times(inverse(root(root(left))), g), inverse(root(root(right))));
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = 0; j < 2; ++j) w[i][j] -= rate * change[i][j];
  }
  return w;
}

TEST_F(MatrixOptimizers, ShampooIsThatOfThePaper) {
  TwoTensors params = two_tensors({0.5f, -1, 2, 0.25f, -0.75f, 1, 3, -2}, {1, -1});
  Matrix expected = shampoo_in_double({{0.5, -1}, {2, 0.25}, {-0.75, 1}, {3, -2}}, 0.1, 0.01, 3);
  Shampoo shampoo{.rate = 0.1, .epsilon = 0.01};
  auto state = init(shampoo, params);
  EXPECT_EQ(state.slots.at("factor_0").weight.shape(), Shape({4, 4}));
  EXPECT_EQ(state.slots.at("factor_1").weight.shape(), Shape({2, 2}));
  for (int k = 1; k <= 3; ++k)
    std::tie(params, state) = update(shampoo, params, gradients_of(k), state);
  std::vector<double> found = numbers_of(params);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(found[i], expected[i / 2][i % 2], 1e-4) << i;
}

// A dimension that is too large is left out: with one dimension, the power is -1/2.
TEST_F(MatrixOptimizers, ShampooLeavesLargeDimensionsOut) {
  TwoTensors params = two_tensors({0, 0, 0, 0, 0, 0, 0, 0}, {0, 0});
  Shampoo shampoo{.rate = 1, .epsilon = 1e-6, .largest = 2};
  auto state = init(shampoo, params);
  EXPECT_FALSE(state.slots.contains("factor_0") &&
               state.slots.at("factor_0").weight.shape() == Shape({4, 4}));
  // The columns of G are orthogonal with norms 2 and 4: G (G^T G)^(-1/2) has columns of norm 1.
  TwoTensors gradients = two_tensors({1, 2, 1, -2, 1, 2, 1, -2}, {3, 4});
  std::vector<double> found = numbers_of(update(shampoo, params, gradients, state).first);
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_NEAR(found[i], i == 3 || i == 7 ? 0.5 : -0.5, 1e-4) << i;
  EXPECT_NEAR(found[8], -0.6, 1e-4) << "a vector over its norm";
  EXPECT_NEAR(found[9], -0.8, 1e-4);
}

// A stack of layers takes the steps that the layers take one by one.
TEST_F(MatrixOptimizers, LayersAreSeparateMatrices) {
  using Layers = StackedTensors;
  std::vector<float> slopes;
  for (int i = 0; i < 24; ++i) slopes.push_back(static_cast<float>((i * i) % 11 - 5));
  Layers params{zeros({2, 4, 3})}, gradients{from_host(slopes, {2, 4, 3})};
  for (const Transform& each :
       {Transform(Muon{.rate = 1}), Transform(Shampoo{.rate = 1, .epsilon = 0.1})}) {
    Tensor all = update(each, params, gradients, init(each, params)).first.stacked;
    for (int layer = 0; layer < 2; ++layer) {
      Tensor w = zeros({4, 3});
      Tensor after = update(each, w, gradients.stacked[layer], init(each, w)).first;
      EXPECT_THAT(all[layer].to_vector<float>(),
                  testing::Pointwise(testing::FloatNear(1e-4f), after.to_vector<float>()));
    }
  }
}

// The step of a matrix has singular values near 1: its product with itself is near the identity.
TEST_F(MatrixOptimizers, MuonMakesMatricesNearlyOrthogonal) {
  std::vector<float> slopes;
  for (int i = 0; i < 32; ++i) slopes.push_back(static_cast<float>((i * i * 7) % 23 - 11));
  Tensor w = zeros({4, 8}), gradient = from_host(slopes, {4, 8});
  Muon muon{.rate = 1, .nesterov = false, .rms = 1 / std::sqrt(8.0)};
  Tensor after = update(muon, w, gradient, init(muon, w)).first;
  std::vector<float> product = matmul(after, matrix_transpose(after)).to_vector<float>();
  for (int i = 0; i < 16; ++i) {
    if (i % 5 == 0)
      EXPECT_THAT(product[i], testing::AllOf(testing::Gt(0.4f), testing::Lt(1.5f)));
    else
      EXPECT_NEAR(product[i], 0, 0.35);
  }
  // Parameters of another rank are AdamW's. With Nesterov momentum, the first step of an element is
  // beta / (1 + beta) + 1 times the rate.
  Tensor bias = zeros({3}), slope = from_host(std::vector<float>{2, -3, 0.5f}, {3});
  auto state = init(muon, bias);
  EXPECT_EQ(state.slots.at("square").shape(), Shape({3}));
  float first = 0.5f * (0.9f / 1.9f + 1);
  Tensor stepped = update(Muon{.rate = 1, .adam_rate = 0.5}, bias, slope, state).first;
  EXPECT_THAT(stepped.to_vector<float>(),
              testing::Pointwise(testing::FloatNear(1e-5f), std::vector{-first, first, -first}));
}

}  // namespace
}  // namespace meshard::optim
