#include "meshard/autodiff/grad.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>

#include "meshard/graph/graph.h"
#include "meshard/graph/graph_text.h"
#include "meshard/graph/leaf.h"
#include "meshard/ops/all.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::ElementsAre;

Tensor vector_of(std::vector<double> values) {
  auto size = static_cast<std::int64_t>(values.size());
  return from_host(std::move(values), {size});
}
Tensor scalar(double value) { return from_host(std::vector<double>{value}, {}); }
double number(const Tensor& t) { return interpret(t).item<double>(); }
std::vector<double> elements(const Tensor& t) { return interpret(t).to_vector<double>(); }

struct Line {
  Tensor slope, offset;
  MESHARD_FIELDS(slope, offset)
};

TEST(Grad, ClosedForms) {
  double x = 0.7;
  EXPECT_DOUBLE_EQ(number(grad([](Tensor t) { return t * t * t; })(scalar(x))), 3 * x * x);
  EXPECT_NEAR(number(grad([](Tensor t) { return sin(exp(t)); })(scalar(x))),
              std::cos(std::exp(x)) * std::exp(x), 1e-12);
  EXPECT_NEAR(number(grad([](Tensor t) { return log(t) / t; })(scalar(x))),
              (1 - std::log(x)) / (x * x), 1e-12);
  EXPECT_THAT(elements(grad([](Tensor t) { return sum(t * t); })(vector_of({1, 2, 3}))),
              ElementsAre(2, 4, 6));
}

TEST(Grad, ValueComesAlong) {
  auto [value, gradient] = value_and_grad([](Tensor t) { return sum(t * 3); })(vector_of({1, 2}));
  EXPECT_EQ(number(value), 9);
  EXPECT_THAT(elements(gradient), ElementsAre(3, 3));
}

TEST(Grad, StructuresHaveGradientsOfTheirForm) {
  auto loss = [](const Line& line, Tensor x) { return sum(line.slope * x + line.offset); };
  Line gradient = grad(loss)(Line{vector_of({1, 2}), vector_of({3, 4})}, vector_of({5, 6}));
  EXPECT_THAT(elements(gradient.slope), ElementsAre(5, 6));
  EXPECT_THAT(elements(gradient.offset), ElementsAre(1, 1));

  std::vector<std::map<std::string, Tensor>> nested = {{{"a", scalar(2)}},
                                                       {{"a", scalar(3)}, {"b", scalar(4)}}};
  auto product = [](const std::vector<std::map<std::string, Tensor>>& p) {
    return p[0].at("a") * p[1].at("a") * p[1].at("b");
  };
  auto g = grad(product)(nested);
  EXPECT_EQ(number(g[0].at("a")), 12);
  EXPECT_EQ(number(g[1].at("a")), 8);
  EXPECT_EQ(number(g[1].at("b")), 6);
}

TEST(Grad, APairIsOneArgument) {
  auto f = [](const std::pair<Tensor, Tensor>& p) { return p.first * p.second * p.second; };
  std::pair<Tensor, Tensor> gradient = grad(f)(std::pair(scalar(2), scalar(3)));
  EXPECT_EQ(number(gradient.first), 9);
  EXPECT_EQ(number(gradient.second), 12);
  auto [of_pair, of_last] = grad<0, 1>([](const std::pair<Tensor, Tensor>& p, Tensor x) {
    return p.first * p.second * x;
  })(std::pair(scalar(2), scalar(3)), scalar(5));
  EXPECT_EQ(number(of_pair.second), 10);
  EXPECT_EQ(number(of_last), 6);
}

TEST(Grad, SeveralArguments) {
  auto f = [](Tensor a, Tensor b, Line line) { return a * b * b * line.slope + line.offset; };
  auto [value, gradients] =
      value_and_grad<0, 2>(f)(scalar(2), scalar(3), Line{scalar(5), scalar(7)});
  EXPECT_EQ(number(value), 97);
  EXPECT_EQ(number(std::get<0>(gradients)), 45);
  EXPECT_EQ(number(std::get<1>(gradients).slope), 18);
  EXPECT_EQ(number(std::get<1>(gradients).offset), 1);
  EXPECT_EQ(number(grad<1>(f)(scalar(2), scalar(3), Line{scalar(5), scalar(7)})), 60);
}

TEST(Grad, AuxiliaryResultsPassThrough) {
  auto f = [](Tensor x) { return std::pair(x * x, std::array{x + 1, x * 10}); };
  auto [result, gradient] = value_and_grad(f)(scalar(3));
  EXPECT_EQ(number(result.first), 9);
  EXPECT_EQ(number(result.second[0]), 4);
  EXPECT_EQ(number(result.second[1]), 30);
  EXPECT_EQ(number(gradient), 6);
}

TEST(Grad, SecondAndThirdOrder) {
  auto f = [](Tensor x) { return x * x * x * x; };
  EXPECT_DOUBLE_EQ(number(grad(grad(f))(scalar(2))), 48);
  EXPECT_DOUBLE_EQ(number(grad(grad(grad(f)))(scalar(2))), 48);
  auto mixed =
      grad([](Tensor x) { return sum(grad([&](Tensor y) { return sum(x * y * y); })(x)); });
  // The inner gradient is 2 x y at y = x. Its derivative is 2 x through the captured x, plus 2 x
  // through the argument.
  EXPECT_THAT(elements(mixed(vector_of({1, 3}))), ElementsAre(4, 12));
}

TEST(Grad, ClosuresAreConstants) {
  Tensor x = scalar(3);
  EXPECT_EQ(number(grad([&](Tensor t) { return t * x; })(x)), 3) << "the closure's x is another";
  Tensor recorded = x * x;
  EXPECT_EQ(number(grad([&](Tensor t) { return t * recorded; })(x)), 9);
  EXPECT_EQ(number(grad([&](Tensor) { return recorded; })(x)), 0);
}

TEST(Grad, TheSameTensorTwiceIsTwoInputs) {
  Tensor x = scalar(3);
  auto f = [](Tensor a, Tensor b) { return a * a * b; };
  auto [value, gradients] = value_and_grad<0, 1>(f)(x, x);
  EXPECT_EQ(number(value), 27);
  EXPECT_EQ(number(std::get<0>(gradients)), 18);
  EXPECT_EQ(number(std::get<1>(gradients)), 9);
  Tensor pending = x + 0;
  auto [value2, again] = value_and_grad<0, 1>(f)(pending, pending);
  EXPECT_EQ(number(std::get<0>(again)), 18);
  EXPECT_EQ(number(std::get<1>(again)), 9);
}

TEST(Grad, TheArgumentItselfMayBeTheResult) {
  EXPECT_EQ(number(grad([](Tensor x) { return x; })(scalar(3))), 1);
}

TEST(Grad, UnusedArgumentsHaveZeros) {
  auto f = [](Tensor a, Tensor) { return a * 2; };
  auto [value, gradients] = value_and_grad<0, 1>(f)(scalar(1), vector_of({1, 2}));
  EXPECT_THAT(elements(std::get<1>(gradients)), ElementsAre(0, 0));
}

TEST(Grad, PathsThroughIntegersEnd) {
  auto f = [](Tensor x) { return x * astype(astype(x, DType::i32), DType::f64); };
  EXPECT_EQ(number(grad(f)(scalar(2.5))), 2) << "only the other path counts";
  auto g = [](Tensor x) { return sum(where(x > 1, x * 5, x)); };
  EXPECT_THAT(elements(grad(g)(vector_of({0, 2}))), ElementsAre(1, 5));
}

TEST(Grad, RefusesWhatHasNoGradient) {
  Tensor whole = from_host(std::vector<std::int32_t>{1}, {});
  EXPECT_TRUE(
      throws_error([&] { (void)grad([](Tensor x) { return astype(x, DType::f32); })(whole); },
                   ErrorCode::kInvalidArgument,
                   {"grad_test.cc:", "argument 0 is i32[]", "only floating-point"}));
  EXPECT_TRUE(throws_error(
      [&] {
        (void)grad([](Tensor x) { return x * 2; })(vector_of({1, 2}));
      },
      ErrorCode::kInvalidArgument,
      {"grad_test.cc:", "must be a float of rank 0, not f64[2]", "mean or sum"}));
}

TEST(Vjp, PullsCotangentsBack) {
  Tensor a = vector_of({1, 2}), b = vector_of({3, 5});
  auto [result, pullback] = vjp([](Tensor x, Tensor y) { return std::array{x * y, x + x}; }, a, b);
  EXPECT_THAT(elements(result[0]), ElementsAre(3, 10));
  auto [da, db] = pullback(std::array{vector_of({1, 10}), vector_of({100, 1000})});
  EXPECT_THAT(elements(da), ElementsAre(203, 2050));
  EXPECT_THAT(elements(db), ElementsAre(1, 20));
  auto [da2, db2] = pullback(std::array{vector_of({1, 1}), vector_of({0, 0})});
  EXPECT_THAT(elements(da2), ElementsAre(3, 5)) << "a pullback can be used again";
}

TEST(Vjp, ResultsMayDependOnOneAnother) {
  auto f = [](Tensor x) {
    Tensor square = x * x, cube = square * x;
    return std::array{square, cube, square + cube};
  };
  Tensor x = scalar(2);
  // The slopes are 4, 12 and 4 + 12: each result contributes, in any order.
  auto pulled = vjp(f, x).second(std::array{scalar(1), scalar(10), scalar(100)});
  EXPECT_EQ(number(std::get<0>(pulled)), 4 + 120 + 1600);
  auto reversed = vjp(
      [&](Tensor t) {
        auto r = f(t);
        return std::array{r[2], r[1], r[0]};
      },
      x);
  EXPECT_EQ(number(std::get<0>(reversed.second(std::array{scalar(100), scalar(10), scalar(1)}))),
            4 + 120 + 1600);
}

TEST(Vjp, RefusesCotangentsOfAnotherForm) {
  auto [result, pullback] = vjp([](Tensor x) { return x * 2; }, vector_of({1, 2}));
  EXPECT_TRUE(throws_error(
      [&, &pull = pullback] {
        (void)pull(vector_of({1, 2, 3}));
      },
      ErrorCode::kInvalidArgument, {"f64[3]", "f64[2]"}));
  EXPECT_TRUE(throws_error(
      [&, &pull = pullback] {
        (void)pull(std::pair(vector_of({1, 2}), scalar(1)));
      },
      ErrorCode::kInvalidArgument, {"the result has 1 tensors, but the cotangent has 2"}));
}

TEST(Grad, GradientsTakeTheShardingsOfTheirPrimals) {
  Sharding rows(Mesh({{"x", 4}}), P("x", none));
  internal::TraceScope scope;
  Tensor w = make_parameter({DType::f32, {8, 2}}, rows, {});
  Tensor g = grad([](Tensor x) { return sum(x * x); })(w);
  EXPECT_EQ(g.sharding(), rows);
}

TEST(Grad, NodesOfTheDerivativeCarryTheLineOfTheirPrimal) {
  internal::TraceScope scope;
  Tensor x = make_parameter({DType::f64, {}}, std::nullopt, {});
  std::uint32_t line = 0;
  auto f = [&](Tensor t) {
    line = __LINE__ + 1;
    Tensor y = sin(t);
    return y * y;
  };
  Tensor g = grad(f)(x);
  Graph graph = Graph::build(std::vector{x.value()}, std::vector{g.value()}, scope.trace());
  int cosines = 0;
  for (const Node* node : graph.nodes()) {
    if (node->op().name != "cos") continue;
    ++cosines;
    EXPECT_EQ(node->where().line, line);
  }
  EXPECT_EQ(cosines, 1);
}

}  // namespace
}  // namespace meshard
