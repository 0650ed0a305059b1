#include "meshard/mesh/device_groups.h"
#include "meshard/mesh/mesh.h"
#include "meshard/mesh/mesh_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

// PyTorch: DeviceMesh(device_type, _layout=_MeshLayout((2, 4), (4, 1)), _rank_map=arange(8)).
TEST(LayoutMesh, AxesStepThroughTheRankMap) {
  Mesh mesh(Layout(IntTuple{4, 2}, IntTuple{1, 4}), RankMap::affine(8, 1, 8), {"tp", "dp"});
  EXPECT_EQ(mesh.rows(), 1);
  EXPECT_EQ(mesh.layout(), Layout(IntTuple{4, 2}, IntTuple{1, 4}));
  EXPECT_EQ(mesh.rank_map(), RankMap::listed({8, 12, 9, 13, 10, 14, 11, 15}));
  EXPECT_EQ(mesh.root().rank_map(), RankMap::affine(8, 1, 8));
  EXPECT_EQ(*mesh.coordinate(13), (IntVector{1, 1}));
}

// PyTorch: the same without _rank_map, which is then arange(layout.cosize()).
TEST(LayoutMesh, OverTheFirstDevices) {
  EXPECT_EQ(Mesh(Layout(IntTuple{2, 4}, IntTuple{4, 1}), {"dp", "tp"}),
            Mesh({{"dp", 2}, {"tp", 4}}));
  Mesh turned(Layout(IntTuple{4, 2}, IntTuple{1, 4}), {"tp", "dp"});
  EXPECT_EQ(turned.rank_map(), RankMap::listed({0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(turned.root().rank_map(), RankMap::identity(8));
  Mesh spread(Layout(2, 4), {"dp"});  // devices 0 and 4, then 1 and 5, ...
  EXPECT_EQ(spread.rows(), 4);
  EXPECT_EQ(spread.ranks(3), RankMap::listed({3, 7}));
  EXPECT_EQ(Mesh(Layout(1, 0), {"x"}), Mesh({{"x", 1}}));
  EXPECT_TRUE(throws_error(
      [] {
        Mesh(Layout(2, 4), {"x", "y"});
      },
      ErrorCode::kInvalidArgument, {"layout_mesh_test.cc", "2 axis names", "1 modes", "2:4"}));
}

TEST(LayoutMesh, WhatTheLayoutLeavesOverAreRows) {
  Mesh mesh(Layout(2, 4), RankMap::listed({7, 6, 5, 4, 3, 2, 1, 0}), {"dp"});
  EXPECT_EQ(mesh.rows(), 4);
  EXPECT_EQ(mesh.ranks(1), RankMap::listed({6, 2}));
  EXPECT_EQ(mesh.group({"dp"}, 5)->to_vector(), (std::vector<std::int64_t>{5, 1}));
}

TEST(LayoutMesh, NestedModesAreAxesOfSeveralModes) {
  Layout layout(IntTuple{IntTuple{2, 2}, IntTuple{2}}, IntTuple{IntTuple{4, 1}, IntTuple{2}});
  Mesh mesh(layout, RankMap::identity(8), {"outer", "cp"});
  EXPECT_EQ(mesh.axis_size("outer"), 4);
  EXPECT_EQ(mesh["outer"].ranks(0), RankMap::listed({0, 1, 4, 5}));
}

// The layout of any mesh over its root's rank map gives the same ranks, position by position.
TEST(LayoutMesh, OfTheLayoutOfAMeshIsThatMesh) {
  TestRandom random;
  for (int i = 0; i < 200; ++i) {
    Mesh mesh = random_mesh(random);
    std::vector<std::string> names;
    for (const MeshAxis& axis : mesh.axes()) names.push_back(axis.name);
    Mesh again(mesh.layout(), mesh.rank_map(), names);
    EXPECT_EQ(again.rank_map(), mesh.rank_map()) << mesh.to_string();
    EXPECT_EQ(again.layout(), mesh.layout()) << mesh.to_string();
    EXPECT_EQ(Mesh::parse(again.to_string()).value(), again) << again.to_string();
  }
}

TEST(LayoutMesh, ErrorsNameTheLayout) {
  auto invalid = ErrorCode::kInvalidArgument;
  Layout grid(IntTuple{2, 4}, IntTuple{4, 1});
  EXPECT_TRUE(throws_error([&] { Mesh(grid, RankMap::identity(8), {"x"}); }, invalid,
                           {"layout_mesh_test.cc", "1 axis names", "2 modes", "(2,4):(4,1)"}));
  EXPECT_TRUE(throws_error(
      [&] {
        Mesh(grid, RankMap::identity(12), {"x", "y"});
      },
      invalid, {"(2,4):(4,1)", "12 positions"}));
  EXPECT_TRUE(throws_error(
      [&] {
        Mesh(grid, RankMap::identity(4), {"x", "y"});
      },
      invalid, {"4 positions"}));
  EXPECT_TRUE(throws_error(
      [&] {
        Mesh(grid, RankMap::identity(8), {"x", "x"});
      },
      invalid, {"\"x\"", "twice"}));
  EXPECT_TRUE(throws_error(
      [] {
        Mesh(Layout(IntTuple{2, 2}, IntTuple{1, 1}), RankMap::identity(4), {"x", "y"});
      },
      invalid, {"overlap", "(2,2):(1,1)"}));
  EXPECT_TRUE(throws_error([] { Mesh(Layout(2, 0), RankMap::identity(4), {"x"}); }, invalid,
                           {"\"x\"", "stride 0"}));
}

}  // namespace
}  // namespace meshard
