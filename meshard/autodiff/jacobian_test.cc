#include "meshard/autodiff/jacobian.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/graph/graph.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::ElementsAre;

Tensor doubles(std::vector<double> values) {
  auto size = static_cast<std::int64_t>(values.size());
  return from_host(std::move(values), {size});
}
std::vector<double> numbers_in(const Tensor& t) { return interpret(t).to_vector<double>(); }

struct Pair {
  Tensor a, b;
  MESHARD_FIELDS(a, b)
};

// (x0 x1, x0^2, 7 x1) at (2, 3)
Tensor three(Tensor x) {
  Tensor a = index(x, {0}), b = index(x, {1});
  return stack({a * b, a * a, b * 7});
}

TEST(Jacobian, BothDirectionsGiveTheMatrix) {
  Tensor x = doubles({2, 3});
  Tensor reverse = jacrev(three)(x), forward = jacfwd(three)(x);
  EXPECT_EQ(reverse.shape(), (Shape{3, 2}));
  EXPECT_THAT(numbers_in(reverse), ElementsAre(3, 2, 4, 0, 0, 7));
  EXPECT_EQ(forward.shape(), (Shape{3, 2}));
  EXPECT_THAT(numbers_in(forward), ElementsAre(3, 2, 4, 0, 0, 7));
}

TEST(Jacobian, ShapesAreTheResultsThenTheArguments) {
  Tensor w = doubles({1, 2, 3, 4, 5, 6}), x = doubles({1, 10});
  auto f = [](Tensor m, Tensor v) { return matmul(reshape(m, {3, 2}), v); };
  EXPECT_EQ(jacrev<0>(f)(w, x).shape(), (Shape{3, 6}));
  // d(W x)_i / dW_i'j = x_j if i = i'
  std::vector<double> expected{1, 10, 0, 0, 0, 0, 0, 0, 1, 10, 0, 0, 0, 0, 0, 0, 1, 10};
  EXPECT_EQ(numbers_in(jacrev(f)(w, x)), expected);
  EXPECT_EQ(numbers_in(jacfwd(f)(w, x)), expected);
  EXPECT_THAT(numbers_in(jacfwd<1>(f)(w, x)), ElementsAre(1, 2, 3, 4, 5, 6));
  auto outer_product = [](Tensor v) { return reshape(v, {1, 2}) * reshape(v, {2, 1}); };
  EXPECT_EQ(jacfwd(outer_product)(x).shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(numbers_in(jacfwd(outer_product)(x)), numbers_in(jacrev(outer_product)(x)));
}

TEST(Jacobian, OfStructures) {
  Tensor two = doubles({2}), five = doubles({5});
  auto number_of = [](Tensor t) { return index(t, {0}); };
  auto f = [&](const Pair& p) { return number_of(p.a) * number_of(p.b); };
  Pair gradient = jacrev(f)(Pair{two, five});
  EXPECT_THAT(numbers_in(gradient.a), ElementsAre(5));
  EXPECT_THAT(numbers_in(gradient.b), ElementsAre(2));
  auto both = [&](Tensor t) { return Pair{t * t, t * 3}; };
  Pair slopes = jacfwd(both)(five);
  EXPECT_EQ(slopes.a.shape(), (Shape{1, 1}));
  EXPECT_THAT(numbers_in(slopes.a), ElementsAre(10));
  EXPECT_THAT(numbers_in(slopes.b), ElementsAre(3));
  auto swapped = [](const Pair& p) { return Pair{p.b * 2, p.a * p.b}; };
  for (const std::vector<Pair>& rows :
       {jacrev(swapped)(Pair{two, five}), jacfwd(swapped)(Pair{two, five})}) {
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_THAT(numbers_in(rows[0].a), ElementsAre(0));
    EXPECT_THAT(numbers_in(rows[0].b), ElementsAre(2));
    EXPECT_THAT(numbers_in(rows[1].a), ElementsAre(5));
    EXPECT_THAT(numbers_in(rows[1].b), ElementsAre(2));
  }
}

TEST(Jacobian, AllRowsAreOnePass) {
  internal::TraceScope scope;
  Tensor x = make_parameter({DType::f64, {5}}, std::nullopt, {});
  for (bool forward : {false, true}) {
    auto f = [](Tensor t) { return sin(t); };
    Tensor matrix = forward ? jacfwd(f)(x) : jacrev(f)(x);
    Graph graph = Graph::build(std::vector{x.value()}, std::vector{matrix.value()}, scope.trace());
    int products = 0;
    for (const Node* node : graph.nodes()) products += node->op().name == "multiply";
    EXPECT_EQ(products, 1) << "of the cosines and all unit vectors";
  }
}

TEST(Jacobian, OfNoElements) {
  Tensor none_at_all = doubles({});
  auto f = [](Tensor x) { return concat({x, x}); };
  EXPECT_EQ(jacrev(f)(none_at_all).shape(), (Shape{0, 0}));
  EXPECT_EQ(jacfwd([](Tensor x) { return sum(x); })(none_at_all).shape(), Shape{0});
}

TEST(Jacobian, TakesFloatsOnly) {
  EXPECT_TRUE(
      throws_error([] { jacrev([](Tensor x) { return astype(x, DType::i32); })(doubles({1})); },
                   ErrorCode::kInvalidArgument, {"[jacrev]", "i32[1]"}));
  EXPECT_TRUE(
      throws_error([] { jacfwd([](Tensor x) { return astype(x, DType::i32); })(doubles({1})); },
                   ErrorCode::kInvalidArgument, {"[jacfwd]", "i32[1]"}));
}

TEST(Hessian, OfAPolynomial) {
  auto f = [](Tensor x) {
    Tensor a = index(x, {0}), b = index(x, {1});
    return a * a * b + b * b * b;
  };
  EXPECT_THAT(numbers_in(hessian(f)(doubles({3, 5}))), ElementsAre(10, 6, 6, 30));
  // The third derivative of b^3 alone is 6.
  EXPECT_THAT(numbers_in(jacfwd(hessian(f))(doubles({3, 5}))), ElementsAre(0, 2, 2, 0, 2, 0, 0, 6));
}

TEST(Hessian, OfAStructureHasARowForEachTensor) {
  auto f = [](const Pair& p) { return sum(p.a * p.a * p.b); };
  std::vector<Pair> rows = hessian(f)(Pair{doubles({2}), doubles({5})});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_THAT(numbers_in(rows[0].a), ElementsAre(10));
  EXPECT_THAT(numbers_in(rows[0].b), ElementsAre(4));
  EXPECT_THAT(numbers_in(rows[1].a), ElementsAre(4));
  EXPECT_THAT(numbers_in(rows[1].b), ElementsAre(0));
}

}  // namespace
}  // namespace meshard
