#include "meshard/mesh/mesh.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

Mesh box() { return Mesh({{"dp", 2}, {"cp", 3}, {"tp", 4}}); }

TEST(MeshFlatten, AdjacentOrNot) {
  Mesh mesh = box();
  Mesh outer = mesh.slice({"dp", "cp"}).flatten("dp_cp");
  EXPECT_EQ(outer.axis_layout(0), Layout(6, 4));
  Mesh ends = mesh.slice({"dp", "tp"}).flatten();
  EXPECT_EQ(ends.axes()[0], (MeshAxis{"dp_tp", 8}));
  EXPECT_EQ(ends.axis_layout(0), Layout(IntTuple{2, 4}, IntTuple{12, 1}));
  EXPECT_EQ(ends.ranks(1), RankMap::listed({4, 5, 6, 7, 16, 17, 18, 19}));
  EXPECT_EQ(mesh.flatten("all").axis_layout(0), Layout(24, 1));
  EXPECT_EQ(mesh.permute({"tp", "cp", "dp"}).flatten("back").axis_layout(0),
            Layout(IntTuple{4, 3, 2}, IntTuple{1, 4, 12}));
}

TEST(MeshFlatten, SomeAxesInPlace) {
  Mesh mesh = box().flatten({"dp", "tp"}, "dt");
  EXPECT_EQ(mesh.to_string(), "mesh<dt=(2,4):(12,1), cp=3:4 of mesh<dp=2, cp=3, tp=4>>");
  EXPECT_EQ(*mesh.coordinate(17), (IntVector{5, 1}));
  EXPECT_TRUE(throws_error([&] { mesh.flatten(AxisNames({}), "x"); }, ErrorCode::kInvalidArgument,
                           {"at least one axis"}));
  EXPECT_TRUE(throws_error(
      [] {
        box().flatten({"dp", "tp"}, "cp");
      },
      ErrorCode::kInvalidArgument, {"\"cp\""}));
}

TEST(MeshFlatten, NamesOfTheAxesThemselves) {
  EXPECT_TRUE(throws_error(
      [] {
        box().flatten({"dp", "cp"}, "dp");
      },
      ErrorCode::kInvalidArgument, {"\"dp\" is an axis of the root"}));
  Mesh split = box().unflatten("tp", {{"p", 2}, {"q", 2}});
  EXPECT_EQ(split.flatten({"p", "q"}, "p").flattened()[0].first, "p");
  EXPECT_TRUE(split.flatten({"p"}, "p").is_same_object(split));
}

TEST(MeshFlatten, TheRootRemembersNames) {
  Mesh mesh = box();
  Mesh first = mesh.slice({"dp", "cp"}).flatten("x");
  EXPECT_TRUE(mesh.slice({"dp", "cp"}).flatten("x").is_same_object(first));
  EXPECT_FALSE(mesh.slice({"dp", "cp"}).flatten("y").is_same_object(first));  // an alias
  EXPECT_TRUE(first.flatten("x").is_same_object(first));
  EXPECT_TRUE(throws_error(
      [&] {
        mesh.slice({"cp", "tp"}).flatten("x");
      },
      ErrorCode::kInvalidArgument,
      {"flatten_test.cc", "\"x\" already names the axis 6:4", "12:1"}));
  EXPECT_TRUE(throws_error(
      [&] {
        mesh.slice({"dp", "cp"}).flatten("tp");
      },
      ErrorCode::kInvalidArgument, {"\"tp\" is an axis of the root"}));
  EXPECT_TRUE(throws_error([&] { mesh.flatten("a-b"); }, ErrorCode::kInvalidArgument, {"a-b"}));
  EXPECT_TRUE(throws_error([&] { mesh.slice(AxisNames({})).flatten(); },
                           ErrorCode::kInvalidArgument, {"need a name"}));
  std::vector<std::pair<std::string, Layout>> names = mesh.flattened();
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names[0], (std::pair<std::string, Layout>("x", Layout(6, 4))));
  EXPECT_EQ(names[1].first, "y");
}

// Names belong to a root: equal roots do not share them (pytorch#163330).
TEST(MeshFlatten, RootsDoNotMix) {
  Mesh one = box(), two = box();
  one.slice({"dp", "cp"}).flatten("x");
  EXPECT_EQ(one, two);
  EXPECT_TRUE(two.flattened().empty());
  EXPECT_NO_THROW(two.slice({"cp", "tp"}).flatten("x"));
  EXPECT_TRUE(two["tp"].root().is_same_object(two));
  EXPECT_FALSE(two["tp"].same_root(one["tp"]));
}

TEST(MeshFlatten, ARefusedFlattenLeavesNoName) {
  Mesh mesh = box();
  EXPECT_THROW(mesh.flatten({"dp", "cp"}, "tp"), Error);
  EXPECT_THROW(mesh.flatten({"dp", "dp"}, "x"), Error);
  EXPECT_TRUE(mesh.flattened().empty());
}

}  // namespace
}  // namespace meshard
