// First and second derivatives where two operands of max, abs or where are equal: the function's
// own, or JAX's if it has none.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "meshard/autodiff/jacobian.h"
#include "meshard/graph/leaf.h"
#include "meshard/ops/all.h"
#include "meshard/ops/composite/activation.h"
#include "meshard/ops/composite/elementary.h"
#include "meshard/ops/composite/linalg.h"
#include "meshard/ops/composite/softmax.h"
#include "tests/support/interpreter.h"

namespace meshard {
namespace {

using Row = std::vector<double>;
using OfRow = std::function<Tensor(const Tensor&)>;

void expect_close(const Tensor& got, const Row& expected) {
  Row values = interpret(got).to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], 1e-12) << "element " << i;
}

void expect_derivatives(const OfRow& f, const Row& at, const Row& first, const Row& second) {
  Tensor x = from_host(at, {std::ssize(at)});
  auto total = [&](Tensor t) { return sum(f(t)); };
  expect_close(grad(total)(x), first);
  expect_close(hessian(total)(x), second);
}

Tensor element(const Tensor& x, std::int64_t i) { return index(x, {i}); }

TEST(Ties, OfLogisticFunctions) {
  expect_derivatives([](const Tensor& x) { return softplus(x); }, {0}, {0.5}, {0.25});
  expect_derivatives([](const Tensor& x) { return log_sigmoid(x); }, {0}, {0.5}, {-0.25});
  expect_derivatives([](const Tensor& x) { return silu(x); }, {0}, {0.5}, {0.5});
  expect_derivatives([](const Tensor& x) { return mish(x); }, {0}, {0.6}, {0.64});
  double slope = std::sqrt(2 / std::acos(-1.0));
  expect_derivatives([](const Tensor& x) { return gelu(x, GeluForm::kTanh); }, {0}, {0.5}, {slope});
}

TEST(Ties, OfLogarithmsOfSums) {
  auto pair = [](const Tensor& x) { return logaddexp(element(x, 0), element(x, 1)); };
  for (double at : {0.0, 2.0, -700.0})
    expect_derivatives(pair, {at, at}, {0.5, 0.5}, {0.25, -0.25, -0.25, 0.25});
  expect_derivatives([](const Tensor& x) { return logsumexp(x); }, {1, 1}, {0.5, 0.5},
                     {0.25, -0.25, -0.25, 0.25});
  expect_derivatives([](const Tensor& x) { return element(softmax(x), 0); }, {1, 1}, {0.25, -0.25},
                     {0, 0, 0, 0});
  // Away from ties: 1 and 3.
  double p = 1 / (1 + std::exp(2.0)), q = p * (1 - p);
  expect_derivatives(pair, {1, 3}, {p, 1 - p}, {q, -q, -q, q});
}

// The Hessian of a logistic regression at w = 0 is the mean of x x^T / 4.
TEST(Ties, OfALogisticRegressionThatBegins) {
  Tensor x = from_host<double>({1, 2, 3, -1}, {2, 2}), targets = from_host<double>({1, 0}, {2});
  auto loss = [&](const Tensor& w) { return binary_cross_entropy(matmul(x, w), targets); };
  expect_derivatives(loss, {0, 0}, {0.5, -0.75}, {1.25, -0.125, -0.125, 0.625});
}

TEST(Ties, OfNorms) {
  auto pair = [](const Tensor& x) { return hypot(element(x, 0), element(x, 1)); };
  double r = std::sqrt(0.5), h = std::sqrt(0.125);
  expect_derivatives(pair, {1, 1}, {r, r}, {h, -h, -h, h});
  expect_derivatives(pair, {-1, 1}, {-r, r}, {h, h, h, h});
  expect_derivatives(pair, {0, 4}, {0, 1}, {0.25, 0, 0, 0});
  expect_derivatives(pair, {-4, 0}, {-1, 0}, {0, 0, 0, 0.25});
  expect_derivatives(pair, {0, 0}, {0, 0}, {0, 0, 0, 0});
  auto norm = [](const Tensor& x) { return vector_norm(x); };
  expect_derivatives(norm, {1, 1}, {r, r}, {h, -h, -h, h});
  expect_derivatives(norm, {0, 2}, {0, 1}, {0.5, 0, 0, 0});
}

// Where no derivative exists, the result is JAX's.
TEST(Ties, OfCornersAreThoseOfJax) {
  expect_derivatives([](const Tensor& x) { return abs(x); }, {0}, {1}, {0});
  expect_derivatives([](const Tensor& x) { return relu(x); }, {0}, {0}, {0});
  expect_derivatives([](const Tensor& x) { return relu6(x); }, {0, 6}, {0, 0}, {0, 0, 0, 0});
  expect_derivatives([](const Tensor& x) { return elu(x); }, {0}, {1}, {1});
  expect_derivatives([](const Tensor& x) { return leaky_relu(x); }, {0}, {1}, {0});
  expect_derivatives([](const Tensor& x) { return soft_sign(x); }, {0}, {1}, {-2});
  expect_derivatives([](const Tensor& x) { return hard_tanh(x); }, {1, -1}, {1, 1}, {0, 0, 0, 0});
  expect_derivatives([](const Tensor& x) { return maximum(element(x, 0), element(x, 1)); }, {1, 1},
                     {0.5, 0.5}, {0, 0, 0, 0});
}

// The mixed derivative, in either order: b a^(b-1) (1 / b + log a), which is 1 / a at b = 0.
TEST(Ties, OfPowersByZero) {
  auto power = [](const Tensor& x) { return pow(element(x, 0), element(x, 1)); };
  double l = std::log(2.0);
  expect_derivatives(power, {2, 0}, {0, l}, {0, 0.5, 0.5, l * l});
  expect_derivatives(power, {2, 1}, {1, 2 * l}, {0, 1 + l, 1 + l, 2 * l * l});
}

// Where the result is NaN, the derivative is NaN too, but that of max is 0.
TEST(Ties, OfNaN) {
  auto slope_of = [](const OfRow& f) {
    Tensor x = from_host<double>({NAN}, {1});
    return interpret(grad([&](const Tensor& t) { return sum(f(t)); })(x)).at<double>({0});
  };
  EXPECT_TRUE(std::isnan(slope_of([](const Tensor& x) { return softplus(x); })));
  EXPECT_TRUE(std::isnan(slope_of([](const Tensor& x) { return logaddexp(x, -x); })));
  EXPECT_EQ(slope_of([](const Tensor& x) { return maximum(x, 0); }), 0);
}

// The derivatives are cofactors, from explicit formulas up to size 3.
TEST(Ties, OfDeterminantsOfSingularMatrices) {
  auto f = [](std::int64_t size) {
    return [size](const Tensor& x) { return det(reshape(x, {size, size})); };
  };
  Row of_two{0, 0, 0, 1, 0, 0, -1, 0, 0, -1, 0, 0, 1, 0, 0, 0};
  expect_derivatives(f(2), {0, 0, 0, 0}, {0, 0, 0, 0}, of_two);
  expect_derivatives(f(2), {1, 2, 2, 4}, {4, -2, -2, 1}, of_two);
  Tensor counted = from_host<double>({1, 2, 3, 4, 5, 6, 7, 8, 9}, {9});
  expect_close(det(reshape(counted, {3, 3})), {0});
  expect_close(grad(f(3))(counted), {-3, 6, -3, 6, -12, 6, -3, 6, -3});
  // The derivatives of the first element's cofactor, at the matrix of ones.
  Tensor second = hessian(f(3))(ones({9}, DType::f64));
  expect_close(element(second, 0), {0, 0, 0, 0, 1, -1, 0, -1, 1});
}

// jax.nn.celu(x, 2): the two halves share the derivative at 0.
TEST(Ties, CeluAtZero) {
  expect_derivatives([](const Tensor& x) { return celu(x, 2); }, {0, 2, -2}, {1, 1, std::exp(-1)},
                     {0.125, 0, 0, 0, 0, 0, 0, 0, std::exp(-1) / 2});
}

}  // namespace
}  // namespace meshard
