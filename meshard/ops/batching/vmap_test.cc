#include "meshard/ops/batching/vmap.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "meshard/graph/leaf.h"
#include "meshard/ops/arithmetic.h"
#include "meshard/ops/composite/control_flow.h"
#include "meshard/ops/composite/create.h"
#include "meshard/ops/composite/operators.h"
#include "meshard/ops/exponential.h"
#include "meshard/ops/identity.h"
#include "meshard/ops/reduction.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

Tensor numbers(std::vector<float> values, Shape shape) {
  return from_host(std::move(values), std::move(shape));
}
std::vector<float> values(const Tensor& x) { return interpret(x).to_vector<float>(); }

struct Line {
  Tensor slope, offset;
  MESHARD_FIELDS(slope, offset)
};

const Tensor& rows() {
  static const Tensor x = numbers({1, 2, 3, 4, 5, 6}, {2, 3});
  return x;
}

TEST(Vmap, CallsTheFunctionOnceWithOneMember) {
  int calls = 0;
  Tensor sums = vmap([&](const Tensor& x) {
    ++calls;
    EXPECT_EQ(x.shape(), Shape({3}));
    return sum(x * x);
  })(rows());
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(values(sums), (std::vector<float>{14, 77}));
}

TEST(Vmap, MembersLieWhereInAxesSay) {
  auto f = [](const Tensor& x, const Tensor& w) { return x * w; };
  Tensor w = numbers({10, 20}, {2});
  Tensor columns = vmap(f, {.in_axes = {1, none}})(rows(), w);
  EXPECT_EQ(columns.shape(), Shape({3, 2}));
  EXPECT_EQ(values(columns), (std::vector<float>{10, 80, 20, 100, 30, 120}));
  EXPECT_EQ(values(vmap(f, {.in_axes = {-1, none}})(rows(), w)), values(columns));
  Tensor each = vmap(f, {.in_axes = {0, 0}})(rows(), w);
  EXPECT_EQ(values(each), (std::vector<float>{10, 20, 30, 80, 100, 120}));
}

TEST(Vmap, ResultsLieWhereOutAxesSay) {
  auto twice = [](const Tensor& x) { return x + x; };
  Tensor transposed = vmap(twice, {.out_axes = 1})(rows());
  EXPECT_EQ(transposed.shape(), Shape({3, 2}));
  EXPECT_EQ(values(transposed), (std::vector<float>{2, 8, 4, 10, 6, 12}));
  EXPECT_EQ(values(vmap(twice, {.out_axes = -1})(rows())), values(transposed));
}

TEST(Vmap, WhatAllShareIsRepeatedOrComesAsItIs) {
  Tensor w = numbers({7, 8}, {2});
  auto f = [&](const Tensor& x) { return std::tuple(x, w, w + 1); };
  auto [x, repeated, also] = vmap(f)(rows());
  EXPECT_EQ(values(repeated), (std::vector<float>{7, 8, 7, 8}));
  EXPECT_EQ(also.shape(), Shape({2, 2}));
  auto [y, same, once] = vmap(f, {.out_axes = {0, none, 1}})(rows());
  EXPECT_EQ(same.value(), w.value()) << "not even copied";
  EXPECT_EQ(values(once), (std::vector<float>{8, 8, 9, 9}));
}

TEST(Vmap, TakesStructures) {
  Line lines{numbers({1, 2}, {2}), numbers({5, 6}, {2})};
  auto at = [](const Line& line, const Tensor& x, float scale) {
    return std::map<std::string, Tensor>{{"y", line.slope * x * scale + line.offset}};
  };
  auto y = vmap(at, {.in_axes = {0, none, none}})(lines, numbers({1, 2}, {2}), 10.0f);
  EXPECT_EQ(values(y.at("y")), (std::vector<float>{15, 25, 26, 46}));
  // A scalar x adds no dimension.
  auto z = vmap(at, {.in_axes = {0, none, none}})(lines, full({}, 1.0), 1.0f);
  EXPECT_EQ(values(z.at("y")), (std::vector<float>{6, 8}));
}

TEST(Vmap, Nests) {
  Tensor a = numbers({1, 2}, {2}), b = numbers({10, 20, 30}, {3});
  auto product = [](const Tensor& x, const Tensor& y) { return x * y; };
  auto table = vmap(vmap(product, {.in_axes = {none, 0}}), {.in_axes = {0, none}});
  EXPECT_EQ(values(table(a, b)), (std::vector<float>{10, 20, 30, 20, 40, 60}));
  // The inner function captures the outer batch member.
  Tensor sums = vmap(
      [&](const Tensor& x) { return sum(vmap([&](const Tensor& y) { return x * y; })(b)); })(a);
  EXPECT_EQ(values(sums), (std::vector<float>{60, 120}));
}

// The scans that `result` depends on.
std::vector<const Node*> scans_of(const Tensor& result) {
  std::vector<const Node*> scans, waiting{result.value().node()};
  std::set<const Node*> seen;
  while (!waiting.empty()) {
    const Node* node = waiting.back();
    waiting.pop_back();
    if (!seen.insert(node).second) continue;
    if (node->op().name == "scan") scans.push_back(node);
    for (const Value& operand : node->operands()) waiting.push_back(operand.node());
  }
  return scans;
}

TEST(Vmap, CarriesThatDoNotDifferStayAsTheyAre) {
  // Of four carries, the second becomes batched through the first in the second step. The counter
  // and the power of the shared w stay unbatched.
  Tensor w = numbers({2, 3}, {2});
  auto f = [&](const Tensor& x) {
    using Carries = std::tuple<Tensor, Tensor, Tensor, Tensor>;
    auto [last, ys] = scan(
        [&](const Carries& c, std::tuple<>) {
          auto [a, b, i, power] = c;
          return std::pair(Carries(a + x, b + a, i + 1, power * w), std::tuple(power, b));
        },
        Carries(zeros({3}), zeros({3}), zeros({}), ones({2})), std::tuple<>(), {.length = 3});
    return last;
  };
  internal::KeepOperandsScope keep;
  auto [a, b, i, power] = vmap(f, {.out_axes = {0, 0, 0, none}})(rows());
  EXPECT_EQ(power.shape(), Shape({2})) << "shared: not even repeated";
  std::vector<const Node*> scans = scans_of(a);
  ASSERT_EQ(scans.size(), 1u);
  EXPECT_EQ(scans_of(power), scans);
  std::vector<Shape> shapes;
  for (std::uint32_t k = 0; k < scans[0]->num_outputs(); ++k)
    shapes.push_back(scans[0]->type(k).shape);
  EXPECT_EQ(shapes, (std::vector<Shape>{{2, 3}, {2, 3}, {}, {2}, {3, 2}, {3, 2, 3}}));
}

TEST(Vmap, TheSizeCanBeSaid) {
  Tensor w = numbers({1, 2}, {2});
  Tensor three = vmap([&](const Tensor& x) { return x + w; }, {.in_axes = none, .axis_size = 3})(w);
  EXPECT_EQ(three.shape(), Shape({3, 2}));
  Tensor nothing = vmap([](const Tensor& x) { return x + x; })(zeros({0, 4}));
  EXPECT_EQ(nothing.shape(), Shape({0, 4}));
}

TEST(Vmap, RecordedNodesKeepTheLinesOfTheMembers) {
  int line = 0;
  Tensor y = vmap([&](const Tensor& x) {
    line = __LINE__ + 1;
    return exp(x);
  })(rows());
  EXPECT_EQ(y.value()->op().name, "exp");
  EXPECT_EQ(static_cast<int>(y.where().line), line);
}

TEST(Vmap, ConstraintsLeaveTheBatchOpenOrSplitIt) {
  Mesh mesh({{"data", 2}, {"model", 4}});
  auto f = [&](const Tensor& x) { return sharding_constraint(x, Sharding(mesh, P("model"))); };
  Tensor x = zeros({8, 4});
  EXPECT_EQ(vmap(f)(x).sharding(), Sharding(mesh, P(unconstrained, "model")));
  EXPECT_EQ(vmap(f, {.mesh_axis = "data"})(x).sharding(), Sharding(mesh, P("data", "model")));
  EXPECT_EQ(vmap(f, {.mesh_axis = "other"})(x).sharding(),
            Sharding(mesh, P(unconstrained, "model")));
  EXPECT_TRUE(throws_error([&] { vmap(f, {.mesh_axis = "model"})(x); }, ErrorCode::kInvalidArgument,
                           {"axis \"model\" cannot split the batch", "dimension 0"}));
}

TEST(Vmap, ErrorsOfArguments) {
  auto f = [](const Tensor& x, const Tensor& y) { return x + y; };
  Tensor three = zeros({3}), two = zeros({2, 3}), scalar = zeros({});
  auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(
      throws_error([&] { vmap(f)(two, three); }, invalid,
                   {"vmap_test.cc:", "argument 0 dimension 0 = 2", "argument 1 dimension 0 = 3"}));
  EXPECT_TRUE(throws_error([&] { vmap(f, {.axis_size = 4})(two, two); }, invalid,
                           {"axis_size = 4", "argument 0 dimension 0 = 2"}));
  EXPECT_TRUE(throws_error([&] { vmap(f)(two, scalar); }, invalid,
                           {"argument 1 is f32[]", "no dimension 0", "none"}));
  EXPECT_TRUE(throws_error(
      [&] {
        vmap(f, {.in_axes = {0, 5}})(two, two);
      },
      invalid, {"argument 1", "no dimension 5"}));
  EXPECT_TRUE(throws_error(
      [&] {
        vmap(f, {.in_axes = {0, 0, 0}})(two, two);
      },
      invalid, {"3 in_axes", "2 arguments with 2 tensors"}));
  EXPECT_TRUE(throws_error([&] { vmap(f, {.in_axes = none})(two, two); }, invalid,
                           {"no argument is mapped", "axis_size"}));
  EXPECT_TRUE(throws_error([&] { vmap(f)(two, Tensor()); }, invalid, {"argument 1 has no value"}));
}

TEST(Vmap, ErrorsOfResults) {
  Tensor two = zeros({2, 3});
  auto same = [](const Tensor& x) { return x; };
  auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(throws_error([&] { vmap(same, {.out_axes = none})(two); }, invalid,
                           {"f32[3]", "differs between members"}));
  EXPECT_TRUE(throws_error([&] { vmap(same, {.out_axes = 2})(two); }, invalid,
                           {"out_axes asks for dimension 2", "f32[3] for each member"}));
  EXPECT_TRUE(throws_error(
      [&] {
        vmap(same, {.out_axes = {0, 0}})(two);
      },
      invalid, {"2 out_axes for 1"}));
  EXPECT_TRUE(throws_error([&] { vmap([](const Tensor&) { return Tensor(); })(two); }, invalid,
                           {"tensor 0 of the result has no value"}));
}

TEST(Vmap, AMemberHasNoElementsToRead) {
  EXPECT_TRUE(
      throws_error([&] { vmap([](const Tensor& x) { return x * x.item<float>(); })(ones({2})); },
                   ErrorCode::kFailedPrecondition, {"traced value"}));
}

}  // namespace
}  // namespace meshard
