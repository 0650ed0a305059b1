#include "meshard/lowering/internal/dropped_shardings.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"

namespace meshard {
namespace {

const Mesh kGrid({{"x", 4}, {"y", 2}});

// The result of dropped_shardings() for `f`, with parameters of these shapes and shardings.
template <class F>
std::vector<std::optional<Sharding>> following(
    const std::vector<std::pair<Shape, std::optional<Sharding>>>& arguments, F f) {
  internal::TraceScope scope;
  std::vector<Tensor> parameters;
  std::vector<Value> leaves, results;
  for (const auto& [shape, sharding] : arguments) {
    parameters.push_back(make_parameter({DType::f32, shape}, sharding, {}));
    leaves.push_back(parameters.back().value());
  }
  for (const Tensor& result : f(parameters)) results.push_back(result.value());
  Graph graph = Graph::build(leaves, results, scope.trace());
  return dropped_shardings(graph, ProgramMeshes(graph));
}
using Parameters = std::vector<Tensor>;

TEST(DroppedShardings, OfUnevenSizesFollowTheRules) {
  Sharding uneven(kGrid, P("x", "y"));
  auto results = following({{{5, 3}, uneven}, {{3}, std::nullopt}}, [](const Parameters& p) {
    return Parameters{p[0] + p[1], permute_dims(exp(p[0]), {1, 0}), sum(p[0], 1), sum(p[0])};
  });
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[0], uneven) << "the unmarked operand joins";
  EXPECT_EQ(results[1], Sharding(kGrid, P("y", "x")));
  EXPECT_EQ(results[2], Sharding(kGrid, P("x")));
  EXPECT_FALSE(results[3]) << "a scalar is not split";
}

TEST(DroppedShardings, OfEvenSizesAndWholeAxesAreLeftToTheCompiler) {
  auto results = following({{{8, 4}, Sharding(kGrid, P("x", "y"))}}, [](const Parameters& p) {
    return Parameters{p[0] * 2, slice(p[0], {0, 0}, {5, 4})};
  });
  EXPECT_FALSE(results[0]);
  EXPECT_FALSE(results[1]);
}

TEST(DroppedShardings, EvenResultsAmongUnevenOnesToo) {
  auto results = following({{{5, 8}, Sharding(kGrid, P("x", "y"))}}, [](const Parameters& p) {
    return Parameters{sum(p[0], 0), p[0] * 2};
  });
  EXPECT_FALSE(results[0]);
  EXPECT_TRUE(results[1]);
}

TEST(DroppedShardings, MarksInsideCountAndConflictsSayNothing) {
  Sharding rows(kGrid, P("x", none)), columns(kGrid, P(none, "x"));
  auto results = following({{{5, 5}, std::nullopt}}, [&](const Parameters& p) {
    Tensor a = sharding_constraint(p[0], rows), b = sharding_constraint(p[0], columns);
    return Parameters{a * 2, a + b};
  });
  EXPECT_EQ(results[0], rows);
  EXPECT_FALSE(results[1]) << "one axis cannot split both dimensions";
}

TEST(DroppedShardings, OfSubAxesFollowTheRules) {
  Sharding part(kGrid, P({AxisRef("x", 2, 2), "y"}, none));
  auto results = following({{{8, 8}, part}, {{8, 8}, std::nullopt}}, [](const Parameters& p) {
    return Parameters{p[0] + p[1], permute_dims(p[0], {1, 0}), p[1] * 2};
  });
  EXPECT_EQ(results[0], part);
  EXPECT_EQ(results[1], Sharding(kGrid, P(none, {AxisRef("x", 2, 2), "y"})));
  EXPECT_FALSE(results[2]);
}

// The meshes of a program whose parameters have these shardings.
ProgramMeshes meshes_of(const std::vector<Sharding>& shardings) {
  internal::TraceScope scope;
  std::vector<Value> leaves;
  for (const Sharding& sharding : shardings)
    leaves.push_back(make_parameter({DType::f32, {8, 8, 8}}, sharding, {}).value());
  return ProgramMeshes(Graph::build(leaves, leaves, scope.trace()));
}

TEST(DroppedShardings, OpenDimensionsAreClosedAtSubAxes) {
  DimensionSpec of_part(AxisList{AxisRef("x", 2, 2)}, true), of_whole(AxisList{"y"}, true);
  Sharding sharding =
      Sharding(kGrid, P(of_part, of_whole, unconstrained)).with_replicated({AxisRef("x", 1, 2)});
  EXPECT_EQ(closed_at_boundary(sharding, meshes_of({sharding})),
            Sharding(kGrid, P(AxisRef("x", 2, 2), of_whole, unconstrained))
                .with_replicated({AxisRef("x", 1, 2)}));
}

// The compiler rewrites "a" of 2x4 as a part of "x" of 4x2.
TEST(DroppedShardings, AxesThatAreSubAxesOfTheFirstMeshCountAsSuch) {
  Mesh other({{"a", 2}, {"b", 4}}), turned({{"a", 2}, {"b", 4}}, {1, 0, 2, 3, 4, 5, 6, 7});
  DimensionSpec a(AxisList{"a"}, true), x(AxisList{"x"}, true), all(AxisList{"a", "b"}, true);
  Sharding first(kGrid, P(x, none, none)), second(other, P(a, unconstrained, none)),
      third(turned, P(a, unconstrained, none)), fourth(other, P(all, unconstrained, none));
  ProgramMeshes meshes = meshes_of({first, second, third});
  EXPECT_EQ(closed_at_boundary(first, meshes), first);
  EXPECT_EQ(closed_at_boundary(second, meshes), Sharding(other, P("a", unconstrained, none)));
  EXPECT_EQ(closed_at_boundary(third, meshes), third) << "in an order of its own";
  EXPECT_EQ(closed_at_boundary(second, meshes_of({second, first})), second) << "it is first";
  auto results = following({{{8, 8}, Sharding(kGrid, P("x"))}, {{8, 8}, Sharding(other, P("a"))}},
                           [](const Parameters& p) {
                             return Parameters{exp(p[0]), exp(p[1])};
                           });
  EXPECT_FALSE(results[0]);
  EXPECT_EQ(results[1], Sharding(other, P("a", none)));
}

// 10 elements made of 6 follow "z" of 6 by "z":(1)2, which is not a part of "a" or "b" of 3x2.
TEST(DroppedShardings, SubAxesThatTheFirstMeshCannotExpressAreLeftOut) {
  Mesh six({{"z", 6}}), grid({{"a", 3}, {"b", 2}});
  Sharding split(six, P("z")), whole = Sharding::replicated(grid, 1);
  auto padded = [](const Parameters& p) {
    return Parameters{pad(p[1], 1, {0}, {-1}, {1}), exp(p[2])};
  };
  auto alone = following({{{6}, split}, {{6}, split}, {{5}, split}}, padded);
  EXPECT_EQ(alone[0], Sharding(six, P(AxisRef("z", 1, 2))));
  EXPECT_EQ(alone[1], split);
  auto beside = following({{{6}, whole}, {{6}, split}, {{5}, split}}, padded);
  EXPECT_FALSE(beside[0]);
  EXPECT_EQ(beside[1], split);
}

}  // namespace
}  // namespace meshard
