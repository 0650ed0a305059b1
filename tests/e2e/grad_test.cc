// Derivatives on real devices, inside and outside jit: compared with closed forms and differences.
#include "meshard/autodiff/grad.h"

#include <gmock/gmock.h>

#include "tests/support/devices.h"

namespace meshard {
namespace {

using Derivatives = OnDevices;
using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

struct Dense {
  Tensor w, b;
  MESHARD_FIELDS(w, b)
};

Tensor loss_of(const std::vector<Dense>& layers, Tensor x) {
  for (const Dense& layer : layers) x = tanh(matmul(x, layer.w) + layer.b);
  return mean(square(x));
}

std::vector<Dense> two_layers() {
  return {{counting({4, 8}, -16) / 32, counting({8}) / 16},
          {counting({8, 2}, -8) / 16, zeros({2})}};
}

TEST_F(Derivatives, OfANetworkAreTheFiniteDifferences) {
  std::vector<Dense> layers = two_layers();
  Tensor x = counting({8, 4}, -16) / 32;
  auto [loss, gradient] = value_and_grad(loss_of)(layers, x);
  auto [jit_loss, jit_gradient] = jit(value_and_grad(loss_of))(layers, x);
  EXPECT_FLOAT_EQ(loss.item<float>(), jit_loss.item<float>());
  auto at = jit(loss_of);
  for (auto field : {&Dense::w, &Dense::b}) {
    std::vector<float> expected;
    for (std::int64_t i = 0; i < (layers[0].*field).size(); ++i) {
      double sides[2];
      for (int side : {0, 1}) {
        std::vector<Dense> moved = layers;
        std::vector<float> values = (layers[0].*field).to_vector<float>();
        values[static_cast<std::size_t>(i)] += side == 0 ? -0.01f : 0.01f;
        moved[0].*field = from_host(values, (layers[0].*field).shape());
        sides[side] = static_cast<double>(at(moved, x).item<float>());
      }
      expected.push_back(static_cast<float>((sides[1] - sides[0]) / 0.02));
    }
    EXPECT_THAT((gradient[0].*field).to_vector<float>(), Pointwise(FloatNear(1e-4f), expected));
    EXPECT_THAT((jit_gradient[0].*field).to_vector<float>(), Pointwise(FloatNear(1e-4f), expected));
  }
}

TEST_F(Derivatives, DoNotDependOnTheMesh) {
  std::vector<Dense> layers = two_layers();
  Tensor x = counting({8, 4}, -16) / 32;
  std::vector<Dense> expected = grad(loss_of)(layers, x);
  Mesh mesh({{"data", 2}, {"model", 4}}, {7, 6, 5, 4, 3, 2, 1, 0});
  std::vector<Dense> split = layers;
  split[0].w = mark_sharding(layers[0].w, mesh, P(none, "model"));
  split[0].b = mark_sharding(layers[0].b, mesh, P("model"));
  split[1].w = mark_sharding(layers[1].w, mesh, P("model", none));
  Tensor batch = mark_sharding(x, mesh, P("data", none));
  for (bool jitted : {false, true}) {
    std::vector<Dense> got =
        jitted ? jit(grad(loss_of))(split, batch) : grad(loss_of)(split, batch);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_THAT(got[i].w.to_vector<float>(),
                  Pointwise(FloatNear(1e-6f), expected[i].w.to_vector<float>()));
      EXPECT_THAT(got[i].b.to_vector<float>(),
                  Pointwise(FloatNear(1e-6f), expected[i].b.to_vector<float>()));
    }
    EXPECT_EQ(got[0].w.sharding(), split[0].w.sharding());
    EXPECT_EQ(got[0].b.sharding(), split[0].b.sharding());
    EXPECT_EQ(got[1].w.sharding(), split[1].w.sharding());
  }
}

TEST_F(Derivatives, GoThroughAClearedSharding) {
  Tensor x = mark_sharding(counting({4}, 1), Mesh({{"x", 2}}), P("x"));
  auto f = [](Tensor t) { return sum(square(clear_sharding(t))); };
  EXPECT_THAT(grad(f)(x).to_vector<float>(), ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(jit(grad(f))(x).to_vector<float>(), ElementsAre(2, 4, 6, 8));
}

TEST_F(Derivatives, OfHigherOrder) {
  auto f = [](Tensor x) { return x * x * x * x; };
  for (bool computed : {false, true}) {
    Tensor x = counting({}, 2) * 1;
    if (computed) sync({x});
    EXPECT_EQ(grad(grad(f))(x).item<float>(), 48);
    EXPECT_EQ(grad(grad(grad(f)))(x).item<float>(), 48);
    EXPECT_EQ(jit(grad(grad(f)))(x).item<float>(), 48);
  }
}

TEST_F(Derivatives, AFunctionMayBranchOnItsValues) {
  auto f = [](Tensor x) { return x.item<float>() > 0 ? x * x : x * -3; };
  EXPECT_EQ(grad(f)(counting({}, 5)).item<float>(), 10);
  EXPECT_EQ(grad(f)(counting({}, -5)).item<float>(), -3);
}

TEST_F(Derivatives, PullbacksRunLater) {
  auto [y, pullback] =
      vjp([](Tensor a, Tensor b) { return a * b; }, counting({3}, 1), counting({3}, 4));
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(4, 10, 18));
  auto [da, db] = pullback(counting({3}, 1));
  EXPECT_THAT(da.to_vector<float>(), ElementsAre(4, 10, 18));
  EXPECT_THAT(db.to_vector<float>(), ElementsAre(1, 4, 9));
}

TEST_F(Derivatives, OfTheUsersOwnRunInJitAndOutside) {
  auto cube = custom_vjp([](Tensor x) { return std::pair(x * x * x, x); },
                         [](Tensor x, Tensor g) { return g * 10 * square(x); });
  auto loss = [cube](Tensor x) { return sum(cube(x * 2)); };
  Tensor x = counting({4}, 1);
  std::vector<float> expected{80, 320, 720, 1280};  // 10 (2 x)^2 times 2
  EXPECT_EQ(grad(loss)(x).to_vector<float>(), expected);
  EXPECT_EQ(jit(grad(loss))(x).to_vector<float>(), expected);
  EXPECT_EQ(jit(loss)(x).item<float>(), 800);
}

// Expands along the first row.
double determinant(const std::vector<double>& matrix, std::size_t size) {
  if (size == 0) return 1;
  double result = 0;
  for (std::size_t column = 0; column < size; ++column) {
    std::vector<double> rest;
    for (std::size_t i = size; i < size * size; ++i)
      if (i % size != column) rest.push_back(matrix[i]);
    result += (column % 2 == 0 ? 1 : -1) * matrix[column] * determinant(rest, size - 1);
  }
  return result;
}

// The matrix of cofactors, computed from minors on the host.
std::vector<double> cofactors(const std::vector<double>& matrix, std::size_t size) {
  std::vector<double> all;
  for (std::size_t row = 0; row < size; ++row)
    for (std::size_t column = 0; column < size; ++column) {
      std::vector<double> rest;
      for (std::size_t i = 0; i < size * size; ++i)
        if (i / size != row && i % size != column) rest.push_back(matrix[i]);
      double minor = determinant(rest, size - 1);
      all.push_back((row + column) % 2 == 0 ? minor : -minor);
    }
  return all;
}

TEST_F(Derivatives, OfDeterminantsAreTheCofactors) {
  std::vector<std::vector<double>> matrices = {
      std::vector<double>(16, 0.0),
      {1, 2, 3, 4, 2, 4, 6, 8, 1, 0, 5, 2, 0, 3, 1, 1},   // one row is twice another
      {1, 2, 0, 4, 2, 1, 0, 8, 1, 0, 0, 2, 0, 3, 0, 1},   // a column of zeros
      {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 2},   // a zero pivot in the middle
      {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2},   // two zero pivots
      {4, 1, 0, 2, 1, 3, 1, 0, 0, 1, 5, 1, 2, 0, 1, 6}};  // regular
  auto step = jit([](Tensor x) {
    auto [value, gradient] = value_and_grad([](Tensor t) { return det(t); })(x);
    return std::pair(value, gradient);
  });
  for (const std::vector<double>& matrix : matrices) {
    std::vector<double> expected = cofactors(matrix, 4);
    auto [value, gradient] = step(from_host(matrix, {4, 4}));
    double determinant = 0;
    for (std::size_t i = 0; i < 4; ++i) determinant += matrix[i] * expected[i];
    EXPECT_NEAR(value.item<double>(), determinant, 1e-11);
    EXPECT_THAT(gradient.to_vector<double>(), Pointwise(testing::DoubleNear(1e-11), expected));
  }
}

// A determinant is linear in each element: differences with step 1 are its second derivatives.
TEST_F(Derivatives, SecondOnesOfSingularDeterminants) {
  for (std::size_t size : {4, 5, 6})
    for (std::size_t rank : {size - 2, size - 1, size}) {
      std::vector<double> matrix(size * size);
      for (std::size_t i = 0; i < size * size; ++i)
        for (std::size_t k = 0; k < rank; ++k)
          matrix[i] += static_cast<double>((i / size * 3 + k * k) % 5) -
                       static_cast<double>((i % size * k + i % size) % 4);
      auto changed = [&](std::size_t p, std::size_t q) {
        auto at = [&](double a, double b) {
          std::vector<double> other = matrix;
          other[p] += a, other[q] += b;
          return determinant(other, size);
        };
        return p == q ? 0 : at(1, 1) - at(1, 0) - at(0, 1) + at(0, 0);
      };
      auto n = static_cast<std::int64_t>(size);
      std::size_t p = size + 1;  // along one element
      Tensor x = from_host(matrix, {n, n});
      Tensor direction = reshape(one_hot(full({}, static_cast<int>(p)), n * n, DType::f64), {n, n});
      Tensor second = hvp([](Tensor t) { return det(t); }, x, direction);
      std::vector<double> expected;
      for (std::size_t q = 0; q < size * size; ++q) expected.push_back(changed(p, q));
      EXPECT_THAT(second.to_vector<double>(), Pointwise(testing::DoubleNear(1e-6), expected))
          << size << " " << rank;
    }
}

TEST_F(Derivatives, BehindABarrierAreTheSame) {
  std::vector<Dense> layers = two_layers();
  Tensor x = counting({8, 4}, -16) / 32;
  auto [loss, gradient] =
      jit(value_and_grad(apply_backward_optimization_barrier(loss_of)))(layers, x);
  auto [plain_loss, plain] = jit(value_and_grad(loss_of))(layers, x);
  EXPECT_EQ(loss.item<float>(), plain_loss.item<float>());
  EXPECT_THAT(gradient[0].w.to_vector<float>(),
              Pointwise(FloatNear(1e-6f), plain[0].w.to_vector<float>()));
}

}  // namespace
}  // namespace meshard
