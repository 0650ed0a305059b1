#include "meshard/runtime/chosen_shardings.h"

#include <gtest/gtest.h>

#include "tests/support/matchers.h"

namespace meshard {
namespace {

HloShape shape_of(std::vector<std::int64_t> dimensions) {
  HloShape shape;
  shape.element = pjrt::ElementType::kF32;
  for (std::int64_t size : dimensions) shape.dimensions.push_back(size);
  return shape;
}
HloSharding tiles(std::vector<std::int64_t> dimensions, std::vector<std::int64_t> devices,
                  bool replicate = false) {
  return {OpSharding(TileAssignment{.kind = TileKind::kTiled,
                                    .dims = std::move(dimensions),
                                    .devices = std::move(devices),
                                    .replicate_on_last_tile_dim = replicate})};
}
// A program of one argument and one result, both f32[8,4], over mesh<x=2, y=2>.
struct Case {
  Mesh mesh{{{"x", 2}, {"y", 2}}};
  LoweredModule lowered;
  HloInterface compiled;
  Case() {
    TensorType type{DType::f32, {8, 4}};
    lowered.mesh = mesh;
    lowered.arguments.push_back({type, type, std::nullopt});
    lowered.results.push_back({type, type, std::nullopt});
    compiled.parameters = {shape_of({8, 4})};
    compiled.result = shape_of({8, 4});
  }
};

TEST(ReadBack, WithoutAMeshNothingIsSharded) {
  Case test;
  test.lowered.mesh.reset();
  ChosenShardings chosen = read_shardings(test.lowered, test.compiled).value();
  ASSERT_EQ(chosen.arguments.size(), 1u);
  EXPECT_FALSE(chosen.arguments[0]);
}

TEST(ReadBack, TheCompilersChoiceBecomesAxes) {
  Case test;
  test.compiled.parameters = {shape_of({4, 4})};
  test.compiled.parameter_shardings = {tiles({2, 1, 2}, {0, 2, 1, 3}, true)};
  test.compiled.result = shape_of({4, 2});
  test.compiled.output_sharding = tiles({2, 2}, {0, 1, 2, 3});
  ChosenShardings chosen = read_shardings(test.lowered, test.compiled).value();
  EXPECT_EQ(*chosen.arguments[0], Sharding(test.mesh, P("y", none)));
  EXPECT_EQ(*chosen.results[0], Sharding(test.mesh, P("x", "y")));
}

TEST(ReadBack, NothingSaidIsReplicated) {
  Case test;
  ChosenShardings chosen = read_shardings(test.lowered, test.compiled).value();
  EXPECT_EQ(*chosen.arguments[0], Sharding::replicated(test.mesh, 2));
}

TEST(ReadBack, WhatWasAskedIsCheckedAgainstTheShapes) {
  Case test;
  Sharding rows(test.mesh, P("x", none));
  test.lowered.arguments[0].sharding = rows;
  Result<ChosenShardings> wrong = read_shardings(test.lowered, test.compiled);
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message().find("argument 0 of type f32[8,4]"), std::string::npos)
      << wrong.error().what();
  test.compiled.parameters = {shape_of({4, 4})};
  EXPECT_EQ(*read_shardings(test.lowered, test.compiled).value().arguments[0], rows);
}

TEST(ReadBack, OpenDimensionsAreTheCompilers) {
  Case test;
  test.lowered.arguments[0].sharding = Sharding(test.mesh, P("x", unconstrained));
  test.compiled.parameters = {shape_of({4, 2})};
  test.compiled.parameter_shardings = {tiles({2, 2}, {0, 1, 2, 3})};
  EXPECT_EQ(*read_shardings(test.lowered, test.compiled).value().arguments[0],
            Sharding(test.mesh, P("x", "y")));
}

TEST(ReadBack, TilesMayFollowAnotherMeshOfTheProgram) {
  Case test;
  Mesh other({{"z", 4}}, {0, 3, 1, 2});
  test.lowered.meshes = {test.mesh, other};
  test.compiled.parameters = {shape_of({2, 4})};
  test.compiled.parameter_shardings = {tiles({4, 1}, {0, 3, 1, 2})};
  ChosenShardings chosen = read_shardings(test.lowered, test.compiled).value();
  EXPECT_EQ(*chosen.arguments[0], Sharding(other, P("z", none)));
}

TEST(ReadBack, TilesThatNoAxesDescribeGetAMeshOfTheirOwn) {
  Case test;
  test.lowered.mesh = test.mesh = Mesh({{"x", 2}, {"y", 2}}, {7, 5, 6, 4});
  test.lowered.meshes = {test.mesh};
  test.compiled.parameters = {shape_of({2, 4})};
  test.compiled.parameter_shardings = {tiles({4, 1}, {0, 3, 1, 2})};
  Sharding chosen = *read_shardings(test.lowered, test.compiled).value().arguments[0];
  EXPECT_TRUE(chosen.mesh().same_devices(test.mesh));
  std::vector<std::int64_t> rows = {7, 4, 5, 6};  // by tile: logical devices 0, 3, 1, 2
  for (std::int64_t tile = 0; tile < 4; ++tile) {
    std::int64_t position = *chosen.mesh().position(rows[static_cast<std::size_t>(tile)]);
    EXPECT_EQ(chosen.slice(IntVector{8, 4}, position)[0], (DimensionSlice{2 * tile, 2 * tile + 2}));
  }
}

TEST(ReadBack, NamesMeanTheMeshThatHasThem) {
  Case test;
  Mesh columns({{"c", 4}});
  test.lowered.meshes = {test.mesh, columns};
  test.compiled.parameters = {shape_of({2, 4})};
  HloSharding named = tiles({4, 1}, {0, 1, 2, 3});  // of mesh<x=2, y=2>, too
  test.compiled.parameter_shardings = {named};
  EXPECT_EQ(*read_shardings(test.lowered, test.compiled).value().arguments[0],
            Sharding(test.mesh, P({"x", "y"}, none)));
  named.named = {Sharding(columns, P("c", none))};
  test.compiled.parameter_shardings = {named};
  EXPECT_EQ(*read_shardings(test.lowered, test.compiled).value().arguments[0],
            Sharding(columns, P("c", none)));
  // The program has no such mesh: the devices say it.
  named.named = {Sharding(Mesh({{"z", 4}}), P("z", none))};
  test.compiled.parameter_shardings = {named};
  EXPECT_EQ(*read_shardings(test.lowered, test.compiled).value().arguments[0],
            Sharding(test.mesh, P({"x", "y"}, none)));
}

TEST(ReadBack, AChoiceThatIsNoPlacementIsAnError) {
  Case test;
  HloSharding manual{OpSharding(TileAssignment{.kind = TileKind::kManual})};
  test.compiled.parameter_shardings = {manual};
  Result<ChosenShardings> result = read_shardings(test.lowered, test.compiled);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(std::string(result.error().what()).find("argument 0"), std::string::npos);
}

TEST(ReadBack, TuplesOfResults) {
  Case test;
  TensorType type{DType::f32, {8, 4}};
  test.lowered.results.push_back({type, type, std::nullopt});
  test.compiled.result = HloShape();
  test.compiled.result.is_tuple = true;
  test.compiled.result.tuple = {shape_of({4, 4}), shape_of({8, 2})};
  test.compiled.output_sharding =
      HloSharding{OpSharding({tiles({2, 1, 2}, {0, 1, 2, 3}, true).tiles.elements()[0],
                              tiles({1, 2, 2}, {0, 2, 1, 3}, true).tiles.elements()[0]})};
  ChosenShardings chosen = read_shardings(test.lowered, test.compiled).value();
  EXPECT_EQ(*chosen.results[0], Sharding(test.mesh, P("x", none)));
  EXPECT_EQ(*chosen.results[1], Sharding(test.mesh, P(none, "y")));
}

}  // namespace
}  // namespace meshard
