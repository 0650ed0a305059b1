#include "meshard/autodiff/custom_vjp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "meshard/autodiff/grad.h"
#include "meshard/graph/graph.h"
#include "meshard/graph/graph_text.h"
#include "meshard/graph/leaf.h"
#include "meshard/ops/all.h"
#include "tests/support/emitted.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"
#include "tests/support/verify.h"

namespace meshard {
namespace {

using testing::ElementsAre;

Tensor number(double value) { return from_host(std::vector<double>{value}, {}); }
double value_of(const Tensor& t) { return interpret(t).item<double>(); }

// x^3 whose derivative is declared to be 10 x^2.
auto odd_cube() {
  return custom_vjp([](Tensor x) { return std::pair(x * x * x, x); },
                    [](Tensor x, Tensor g) { return g * 10 * x * x; });
}

TEST(CustomVjp, TheDerivativeIsTheUsers) {
  EXPECT_DOUBLE_EQ(value_of(odd_cube()(number(2))), 8);
  auto [value, gradient] = value_and_grad(odd_cube())(number(2));
  EXPECT_DOUBLE_EQ(value_of(value), 8);
  EXPECT_DOUBLE_EQ(value_of(gradient), 40);
  // The chain rule on both sides: d/dx (3 f(2 x)) at 1 = 3 * 10 * 4 * 2.
  EXPECT_DOUBLE_EQ(value_of(grad([](Tensor x) { return odd_cube()(x * 2) * 3; })(number(1))), 240);
}

TEST(CustomVjp, HigherOrdersGoThroughBackward) {
  EXPECT_DOUBLE_EQ(value_of(grad(grad(odd_cube()))(number(2))), 40) << "of 10 x^2: 20 x";
  EXPECT_DOUBLE_EQ(value_of(grad(grad(grad(odd_cube())))(number(2))), 20);
}

TEST(CustomVjp, StructuresOfArgumentsResultsAndResiduals) {
  // (a b, a + b), with derivatives scaled by 100.
  auto f = custom_vjp(
      [](const std::array<Tensor, 2>& pair, double) {
        return std::pair(std::pair(pair[0] * pair[1], pair[0] + pair[1]), pair);
      },
      [](const std::array<Tensor, 2>& pair, const std::pair<Tensor, Tensor>& g) {
        return std::tuple(100 * (g.first * pair[1] + g.second),
                          100 * (g.first * pair[0] + g.second));
      });
  std::array<Tensor, 2> at{number(3), number(5)};
  auto product = [&](const std::array<Tensor, 2>& pair) { return f(pair, 1.5).first; };
  std::array<Tensor, 2> g = grad(product)(at);
  EXPECT_DOUBLE_EQ(value_of(g[0]), 500) << "the unused result's cotangent is zero";
  EXPECT_DOUBLE_EQ(value_of(g[1]), 300);
}

TEST(CustomVjp, AnUndefinedCotangentIsZero) {
  auto f = custom_vjp([](Tensor a, Tensor b) { return std::pair(a * b, std::tuple<>()); },
                      [](std::tuple<>, Tensor g) { return std::tuple(g, Tensor()); });
  auto [value, gradients] = value_and_grad<0, 1>(f)(number(3), number(5));
  EXPECT_DOUBLE_EQ(value_of(std::get<0>(gradients)), 1);
  EXPECT_DOUBLE_EQ(value_of(std::get<1>(gradients)), 0);
}

TEST(CustomVjp, Errors) {
  auto many = custom_vjp([](Tensor x) { return std::pair(x * x, x); },
                         [](Tensor, Tensor g) { return std::tuple(g, g); });
  EXPECT_TRUE(throws_error([&] { grad(many)(number(2)); }, ErrorCode::kInvalidArgument,
                           {"[custom_vjp]", "2 cotangents for the 1 tensors"}));
  auto wrong = custom_vjp([](Tensor x) { return std::pair(x * x, x); },
                          [](Tensor, Tensor) { return zeros({3}, DType::f64); });
  EXPECT_TRUE(throws_error([&] { grad(wrong)(number(2)); }, ErrorCode::kInvalidArgument,
                           {"is f64[3], but the argument is f64[]"}));
}

TEST(CustomVjp, IsNothingInTheProgram) {
  internal::TraceScope scope;
  Tensor x = make_parameter({DType::f32, {4}}, std::nullopt, {});
  Tensor y = odd_cube()(x);
  EXPECT_EQ(emitted(y), "%0 = \"stablehlo.reshape\"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>");
  Graph graph = Graph::build(std::vector{x.value()}, std::vector{y.value()}, scope.trace());
  EXPECT_TRUE(verify(graph).ok());
}

int count(const Graph& graph, std::string_view op) {
  int found = 0;
  for (const Node* node : graph.nodes()) found += node->op().name == op;
  return found;
}

TEST(BackwardOptimizationBarrier, OneBarrierAroundAllCotangents) {
  auto loss = [](Tensor w, const std::array<Tensor, 2>& rest) {
    return sum(w * rest[0]) + sum(rest[1] * rest[1]);
  };
  internal::TraceScope scope;
  std::vector<Tensor> p;
  for (Shape shape : {Shape{4}, Shape{4}, Shape{2, 3}})
    p.push_back(make_parameter({DType::f64, shape}, std::nullopt, {}));
  auto [value, gradients] =
      value_and_grad<0, 1>(apply_backward_optimization_barrier(loss))(p[0], std::array{p[1], p[2]});
  std::vector<Value> results{std::get<0>(gradients).value(), std::get<1>(gradients)[0].value(),
                             std::get<1>(gradients)[1].value()};
  Graph graph =
      Graph::build(std::vector{p[0].value(), p[1].value(), p[2].value()}, results, scope.trace());
  EXPECT_EQ(count(graph, "optimization_barrier"), 1) << to_string(graph);
  for (const Node* node : graph.nodes())
    if (node->op().name == "optimization_barrier") {
      EXPECT_EQ(node->num_outputs(), 3u);
    }
}

TEST(BackwardOptimizationBarrier, ValuesDoNotChange) {
  auto f = [](Tensor a, Tensor b) { return a * a * b; };
  auto [value, gradients] =
      value_and_grad<0, 1>(apply_backward_optimization_barrier(f))(number(3), number(5));
  auto [plain_value, plain] = value_and_grad<0, 1>(f)(number(3), number(5));
  EXPECT_EQ(value_of(value), value_of(plain_value));
  EXPECT_EQ(value_of(std::get<0>(gradients)), value_of(std::get<0>(plain)));
  EXPECT_EQ(value_of(std::get<1>(gradients)), value_of(std::get<1>(plain)));
}

}  // namespace
}  // namespace meshard
