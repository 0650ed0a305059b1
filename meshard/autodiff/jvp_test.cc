#include "meshard/autodiff/jvp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "meshard/autodiff/custom_vjp.h"
#include "meshard/graph/graph.h"
#include "meshard/graph/leaf.h"
#include "meshard/ops/all.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::ElementsAre;

Tensor f64s(std::vector<double> values) {
  auto size = static_cast<std::int64_t>(values.size());
  return from_host(std::move(values), {size});
}
Tensor f64_of(double value) { return from_host(std::vector<double>{value}, {}); }
double real_of(const Tensor& t) { return interpret(t).item<double>(); }
std::vector<double> reals_of(const Tensor& t) { return interpret(t).to_vector<double>(); }

struct Affine {
  Tensor slope, offset;
  MESHARD_FIELDS(slope, offset)
};

TEST(Jvp, ClosedForms) {
  double x = 0.7;
  auto [y, dy] = jvp([](Tensor t) { return sin(exp(t)) * t; }, f64_of(x), f64_of(2));
  EXPECT_NEAR(real_of(y), std::sin(std::exp(x)) * x, 1e-12);
  EXPECT_NEAR(real_of(dy), 2 * (std::cos(std::exp(x)) * std::exp(x) * x + std::sin(std::exp(x))),
              1e-12);
}

TEST(Jvp, OfAQuotient) {
  // One of the two cotangents of a quotient is computed from the other.
  auto f = [](Tensor x, Tensor y) { return x / y; };
  Tensor tangent =
      jvp(f, std::tuple(f64_of(3), f64_of(2)), std::tuple(f64_of(1), f64_of(10))).second;
  EXPECT_EQ(real_of(tangent), 0.5 - 10 * 3 / 4.0);
}

TEST(Jvp, OfSeveralArgumentsAndResults) {
  auto f = [](Tensor x, Tensor y) { return std::array{x * y, x + x, sum(y)}; };
  auto [result, tangent] =
      jvp(f, std::tuple(f64s({1, 2}), f64s({3, 5})), std::tuple(f64s({10, 100}), f64s({1, 2})));
  EXPECT_THAT(reals_of(result[0]), ElementsAre(3, 10));
  EXPECT_THAT(reals_of(tangent[0]), ElementsAre(31, 504));
  EXPECT_THAT(reals_of(tangent[1]), ElementsAre(20, 200));
  EXPECT_EQ(real_of(tangent[2]), 3);
}

TEST(Jvp, OfStructures) {
  auto f = [](const Affine& a) { return a.slope * a.slope + a.offset; };
  auto [y, dy] = jvp(f, Affine{f64_of(3), f64_of(1)}, Affine{f64_of(1), f64_of(10)});
  EXPECT_EQ(real_of(dy), 16);
  auto [same, unchanged] = jvp(f, Affine{f64_of(3), f64_of(1)}, Affine{Tensor(), f64_of(10)});
  EXPECT_EQ(real_of(unchanged), 10);
}

TEST(Jvp, TheTransposeOfTheVjp) {
  // <w, J v> = <J^T w, v> for any v and w: the two sides have no pass in common.
  auto f = [](Tensor x) { return tanh(cumulative_sum(x) * x) / (1 + x * x); };
  Tensor x = f64s({0.3, -0.8, 1.5}), v = f64s({1, -2, 0.5}), w = f64s({0.25, 4, -1});
  double forward = real_of(sum(jvp(f, x, v).second * w));
  auto pulled = vjp(f, x).second(w);
  EXPECT_NEAR(forward, real_of(sum(std::get<0>(pulled) * v)), 1e-12);
  EXPECT_NE(forward, 0);
}

TEST(Jvp, Nests) {
  // Derivatives of x^4 up to the third, each order in forward or reverse mode.
  auto f = [](Tensor x) { return x * x * x * x; };
  Tensor x = f64_of(2), one = f64_of(1);
  auto derivative = [&](auto g) { return [g, one](Tensor t) { return jvp(g, t, one).second; }; };
  EXPECT_DOUBLE_EQ(real_of(derivative(f)(x)), 32);
  EXPECT_DOUBLE_EQ(real_of(derivative(derivative(f))(x)), 48);
  EXPECT_DOUBLE_EQ(real_of(derivative(derivative(derivative(f)))(x)), 48);
  EXPECT_DOUBLE_EQ(real_of(grad(derivative(f))(x)), 48);
  EXPECT_DOUBLE_EQ(real_of(derivative(grad(derivative(f)))(x)), 48);
}

TEST(Jvp, KeepsDirectionsApart) {
  // d/dx (x * d/dy (x + y)): the inner derivative ignores the outer tangent.
  auto outer = [](Tensor x) {
    Tensor one = f64_of(1);
    return x * jvp([&](Tensor y) { return x + y; }, one, one).second;
  };
  EXPECT_EQ(real_of(jvp(outer, f64_of(1), f64_of(1)).second), 1);
}

TEST(Jvp, WhatDoesNotDependHasZeros) {
  Tensor x = f64s({1, 2});
  auto [y, dy] = jvp([&](Tensor t) { return std::pair(x * 3, astype(t, DType::i32)); }, x, x);
  EXPECT_THAT(reals_of(dy.first), ElementsAre(0, 0));
  EXPECT_EQ(interpret(dy.second), HostArray::from_vector<std::int32_t>({0, 0}));
  EXPECT_THAT(reals_of(jvp([](Tensor t) { return t; }, x, x).second), ElementsAre(1, 2));
}

TEST(Jvp, OfCustomDerivatives) {
  auto f = custom_vjp([](Tensor x) { return std::pair(x * x, x); },
                      [](Tensor x, Tensor g) { return g * x * 7; });  // not 2 x, to show its use
  EXPECT_EQ(real_of(jvp(f, f64_of(3), f64_of(1)).second), 21);
}

TEST(Jvp, RefusesTangentsOfAnotherType) {
  EXPECT_TRUE(throws_error([] { (void)jvp([](Tensor x) { return x; }, f64_of(1), f64s({1})); },
                           ErrorCode::kInvalidArgument, {"[jvp]", "f64[1]", "f64[]"}));
  EXPECT_TRUE(throws_error(
      [] {
        Tensor whole = from_host(std::vector<std::int32_t>{1}, {});
        (void)jvp([](Tensor x) { return x * 2; }, whole, whole);
      },
      ErrorCode::kInvalidArgument, {"argument 0 is i32[]"}));
}

TEST(Linearize, OneRecordingServesManyDirections) {
  int calls = 0;
  auto f = [&](Tensor x, Tensor w) {
    ++calls;
    return matmul(x, w);
  };
  Tensor x = from_host<double>({1, 2, 3, 4}, {2, 2}), w = from_host<double>({1, 0, 2, 1}, {2, 2});
  auto linear = linearize(f, x, w);
  Tensor zero = zeros({2, 2}, DType::f64);
  EXPECT_THAT(reals_of(linear.first), ElementsAre(5, 2, 11, 4));
  EXPECT_THAT(reals_of(linear.second(x, zero)), ElementsAre(5, 2, 11, 4));
  EXPECT_THAT(reals_of(linear.second(zero, w)), ElementsAre(5, 2, 11, 4));
  EXPECT_THAT(reals_of(linear.second(x, w)), ElementsAre(10, 4, 22, 8));
  EXPECT_EQ(calls, 1);
}

TEST(Linearize, TheUnusedPassIsNoPartOfTheProgram) {
  internal::TraceScope scope;
  Tensor x = make_parameter({DType::f64, {4}}, std::nullopt, {});
  Tensor dx = make_parameter({DType::f64, {4}}, std::nullopt, {});
  auto f = [](Tensor t) { return sin(t); };
  Tensor dy = jvp(f, x, dx).second;
  std::vector<Value> parameters{x.value(), dx.value()};
  Graph graph = Graph::build(parameters, std::vector{dy.value()}, scope.trace());
  int multiplications = 0;
  for (const Node* node : graph.nodes()) {
    multiplications += node->op().name == "multiply";
    EXPECT_NE(node->op().name, "sin") << "the value was not asked for";
  }
  EXPECT_EQ(multiplications, 1) << "cos(x) * dx";
}

TEST(Jvp, TangentsLieAsTheirResults) {
  Sharding rows(Mesh({{"x", 4}}), P("x", none));
  internal::TraceScope scope;
  Tensor x = make_parameter({DType::f32, {8, 2}}, std::nullopt, {});
  auto f = [&](Tensor t) { return mark_sharding(t * t, rows.mesh(), rows.spec()); };
  EXPECT_EQ(jvp(f, x, x).second.sharding(), rows);
}

TEST(Hvp, IsTheHessianTimesTheVector) {
  // f = x0^2 x1 + x1^3, Hessian [[2 x1, 2 x0], [2 x0, 6 x1]]
  auto f = [](Tensor x) {
    Tensor a = index(x, {0}), b = index(x, {1});
    return a * a * b + b * b * b;
  };
  EXPECT_THAT(reals_of(hvp(f, f64s({3, 5}), f64s({1, 10}))), ElementsAre(70, 306));
}

TEST(Hvp, OfSeveralArguments) {
  auto f = [](Tensor x, const Affine& a) { return x * x * a.slope + a.offset * a.offset; };
  auto [dx, da] = hvp(f, std::tuple(f64_of(3), Affine{f64_of(5), f64_of(7)}),
                      std::tuple(f64_of(1), Affine{f64_of(10), f64_of(100)}));
  EXPECT_EQ(real_of(dx), 10 + 60);
  EXPECT_EQ(real_of(da.slope), 6);
  EXPECT_EQ(real_of(da.offset), 200);
}

}  // namespace
}  // namespace meshard
