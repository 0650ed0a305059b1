#include "meshard/lowering/program_mesh.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

// The graph of a + b, where a and b are parameters with these shardings.
struct Sum {
  Sum(const Sharding& first, const Sharding& second) {
    internal::TraceScope scope;
    Tensor a = make_parameter({DType::f32, {8}}, first, {"a.cc", "f", 1});
    Tensor b = make_parameter({DType::f32, {8}}, second, {"b.cc", "f", 2});
    graph = Graph::build(std::vector{a.value(), b.value()}, std::vector{add(a, b).value()},
                         scope.trace());
  }
  Graph graph;
};

TEST(ProgramMeshes, EqualMeshesAreOne) {
  Mesh mesh({{"x", 4}}), equal({{"x", 4}});
  ProgramMeshes meshes(Sum(Sharding(mesh, P("x")), Sharding(equal, P(none))).graph);
  ASSERT_EQ(meshes.definitions().size(), 1u);
  EXPECT_EQ(meshes.definitions()[0].first, "mesh");
  EXPECT_EQ(meshes.definitions()[0].second, "<[\"x\"=4]>");
  EXPECT_EQ(meshes.sharding_text(Sharding(equal, P("x"))), "<@mesh, [{\"x\"}]>");
}

TEST(ProgramMeshes, TheFirstNumbersTheDevices) {
  Mesh first({{"x", 2}}, {5, 3}), second({{"y", 2}}, {3, 5});
  ProgramMeshes meshes(Sum(Sharding(first, P("x")), Sharding(second, P("y"))).graph);
  EXPECT_EQ(*meshes.numbering(), first);
  ASSERT_EQ(meshes.definitions().size(), 3u);
  EXPECT_EQ(meshes.definitions()[1].second, "<[\"y\"=2], device_ids=[1, 0]>");
}

TEST(ProgramMeshes, InsideAllHaveOneOrder) {
  Mesh first({{"x", 2}}, {5, 3}), second({{"y", 2}}, {3, 5}), alike({{"x", 2}}, {3, 5});
  Sharding y(second, P("y")), x(alike, P("x"));
  ProgramMeshes meshes(Sum(Sharding(first, P("x")), y).graph);
  EXPECT_EQ(meshes.definitions()[2].second, "<[\"y\"=2]>");
  std::string inside = meshes.definitions()[2].first;
  EXPECT_EQ(meshes.border_text(y), "<@mesh_1, [{\"y\"}]>");
  EXPECT_EQ(meshes.sharding_text(y), cat("<@", inside, ", [{\"y\"}]>"));
  EXPECT_EQ(meshes.border_text(Sharding::replicated(second, 1)),
            meshes.sharding_text(Sharding::replicated(second, 1)))
      << "what is whole has no order";
  EXPECT_EQ(meshes.numbering_inside(first), first);
  EXPECT_EQ(meshes.numbering_inside(second), second);

  ProgramMeshes equal_axes(Sum(Sharding(first, P("x")), x).graph);
  EXPECT_EQ(equal_axes.definitions().size(), 2u);
  EXPECT_EQ(equal_axes.border_text(x), "<@mesh_1, [{\"x\"}]>");
  EXPECT_EQ(equal_axes.sharding_text(x), "<@mesh, [{\"x\"}]>");
}

TEST(ProgramMeshes, OtherDevicesAreAnErrorWithBothSides) {
  Mesh first({{"x", 2}}, {0, 1}), second({{"y", 2}}, {2, 3});
  EXPECT_TRUE(throws_error(
      [&] { ProgramMeshes(Sum(Sharding(first, P("x")), Sharding(second, P("y"))).graph); },
      ErrorCode::kInvalidArgument,
      {"two different sets of devices", "mesh<x=2>, a root, is used at a.cc:1",
       "mesh<y=2; devices=[2,3]>, a root, is used at b.cc:2", "transfer()"}));
  Mesh part = Mesh({{"x", 2}, {"y", 2}}).submesh({"y"}, 2).value();
  EXPECT_TRUE(throws_error(
      [&] { ProgramMeshes(Sum(Sharding(first, P("x")), Sharding(part, P("y"))).graph); },
      ErrorCode::kInvalidArgument,
      {part.to_string(), ", of root mesh<x=2, y=2>, is used at b.cc:2"}));
}

TEST(ProgramMeshes, MarksCount) {
  Mesh mesh({{"x", 2}});
  internal::TraceScope scope;
  Tensor a = make_parameter({DType::f32, {8}}, std::nullopt, {});
  Tensor marked = sharding_constraint(a, Sharding(mesh, P("x")));
  Graph graph = Graph::build(std::vector{a.value()}, std::vector{marked.value()}, scope.trace());
  EXPECT_EQ(*ProgramMeshes(graph).numbering(), mesh);
}

// The compiler ends the process if a manual axis is only part of an axis of the first mesh.
TEST(ProgramMeshes, ManualAxesAreWholeAxesOfTheFirstMesh) {
  auto definitions = [](const Mesh& argument, const Mesh& region) {
    internal::TraceScope scope;
    Tensor a = make_parameter({DType::f32, {24}}, Sharding(argument, P(none)), {});
    Tensor result = manual(region, P("a"), P("a"), [](const Tensor& part) { return -part; },
                           {.axes = {"a"}})(a);
    return ProgramMeshes(
               Graph::build(std::vector{a.value()}, std::vector{result.value()}, scope.trace()))
        .definitions();
  };
  auto first = [&](const Mesh& argument, const Mesh& region) {
    return definitions(argument, region).front();
  };
  using Definition = std::pair<std::string, std::string>;
  Mesh wide({{"a", 4}, {"c", 2}}), tall({{"x", 2}, {"y", 4}});
  EXPECT_EQ(first(tall, wide), Definition("common_axes", "<[\"d0\"=2, \"d1\"=2, \"d2\"=2]>"));
  EXPECT_EQ(definitions(tall, wide).size(), 3u);
  EXPECT_EQ(definitions(wide, wide).size(), 1u);
  Mesh finer({{"x", 2}, {"y", 2}, {"z", 2}});
  EXPECT_EQ(first(finer, wide).first, "mesh") << "has all cuts already";
  // 2x3 and 3x2 have no common factorization: that of the manual mesh comes first.
  EXPECT_EQ(first(Mesh({{"x", 2}, {"y", 3}}), Mesh({{"a", 3}, {"b", 2}})),
            Definition("common_axes", "<[\"d0\"=3, \"d1\"=2]>"));
}

TEST(ProgramMeshes, PartsOfAxesAreWholeAxesOfTheFirstMeshWhereItsAxesDoNotFit) {
  Mesh pairs({{"x", 3}, {"y", 2}}), line({{"c", 6}});
  Sharding whole(pairs, P(none)), half(line, P(AxisRef("c", 1, 2))),
      third(line, P(AxisRef("c", 1, 3)));
  EXPECT_EQ(ProgramMeshes(Sum(whole, half).graph).definitions().front().second,
            "<[\"d0\"=2, \"d1\"=3]>");
  EXPECT_EQ(ProgramMeshes(Sum(whole, Sharding(line, P("c"))).graph).definitions().size(), 2u);
  EXPECT_EQ(ProgramMeshes(Sum(whole, third).graph).definitions().size(), 2u);
}

TEST(ProgramMeshes, WithoutMeshes) {
  internal::TraceScope scope;
  Tensor a = make_parameter({DType::f32, {8}}, std::nullopt, {});
  ProgramMeshes meshes(Graph::build(std::vector{a.value()}, std::vector{a.value()}, scope.trace()));
  EXPECT_FALSE(meshes.numbering());
  EXPECT_TRUE(meshes.definitions().empty());
  EXPECT_EQ(meshes.sharding_text(Sharding(Mesh({{"x", 1}}), P("x"))), "");
}

}  // namespace
}  // namespace meshard
