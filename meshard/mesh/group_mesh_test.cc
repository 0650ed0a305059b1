#include "meshard/mesh/device_groups.h"
#include "meshard/mesh/mesh.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(GroupMesh, KeepsTheRootAndTheGroup) {
  Mesh mesh({{"dp", 2}, {"tp", 4}}, {7, 6, 5, 4, 3, 2, 1, 0});
  DeviceGroup group = *mesh.group({"tp"}, 2);
  Mesh tp = Mesh::from_group(group, "x");
  EXPECT_EQ(tp.rank_map(), RankMap::listed({3, 2, 1, 0}));
  EXPECT_TRUE(tp.root().is_same_object(mesh));
  EXPECT_TRUE(tp.group({"x"}, 1)->is_same_object(group));
  EXPECT_EQ(tp, *mesh.submesh("tp", 2)->rename({{"tp", "x"}}).submesh("x", 2));
  EXPECT_TRUE(tp.is_submesh_of(mesh));
}

TEST(GroupMesh, OfGroupsOutlivesTheMeshTheyCameFrom) {
  auto group = [] { return *Mesh({{"dp", 2}, {"tp", 4}})["tp"].group({"tp"}, 5); }();
  Mesh tp = Mesh::from_group(group, "tp");
  EXPECT_EQ(tp.root(), Mesh({{"dp", 2}, {"tp", 4}}));
  EXPECT_TRUE(tp.groups({"tp"})[0].is_same_object(group));
}

TEST(GroupMesh, OfAllDevicesIsAViewOfTheRoot) {
  Mesh mesh({{"a", 2}, {"b", 2}});
  Mesh all = Mesh::from_group(*mesh.group({"a", "b"}, 0), "ab");
  EXPECT_TRUE(all.base().is_same_object(mesh));
}

TEST(GroupMesh, OneAxisForEachGroup) {
  Mesh mesh({{"dp", 2}, {"cp", 2}, {"tp", 2}});
  DeviceGroup tp = *mesh.group({"tp"}, 6), dp = *mesh.group({"dp"}, 6);
  Mesh grid = Mesh::from_groups({tp, dp}, {"tp", "dp"});
  // cp is 1 for device 6: devices 2, 3, 6, 7, with tp as the slow axis.
  EXPECT_EQ(grid.rank_map(), RankMap::listed({2, 6, 3, 7}));
  EXPECT_TRUE(grid.group({"tp"}, 6)->is_same_object(tp));
  EXPECT_TRUE(grid.group({"dp"}, 6)->is_same_object(dp));
  EXPECT_TRUE(grid.root().is_same_object(mesh));
}

TEST(GroupMesh, KeepsExplicitAxes) {
  Mesh mesh = Mesh({{"dp", 2}, {"tp", 4}}).with_axis_kind({"tp"}, AxisKind::kExplicit);
  EXPECT_EQ(Mesh::from_group(*mesh.group({"tp"}, 0), "x").axes()[0].kind, AxisKind::kExplicit);
  EXPECT_EQ(Mesh::from_group(*mesh.group({"dp"}, 0), "x").axes()[0].kind, AxisKind::kAuto);
  EXPECT_TRUE(throws_error(
      [&] {
        Mesh::from_group(*mesh.group({"dp", "tp"}, 0), "x");
      },
      ErrorCode::kInvalidArgument, {"\"dp\"", "\"tp\"", "explicit"}));
}

TEST(GroupMesh, ErrorsNameTheGroups) {
  Mesh mesh({{"dp", 2}, {"tp", 4}}), twin({{"dp", 2}, {"tp", 4}});
  auto invalid = ErrorCode::kInvalidArgument;
  DeviceGroup tp = *mesh.group({"tp"}, 0), other_tp = *mesh.group({"tp"}, 4);
  DeviceGroup dp = *mesh.group({"dp"}, 1), twin_dp = *twin.group({"dp"}, 1);
  EXPECT_TRUE(throws_error([&] { Mesh::from_groups({}, {}); }, invalid, {"0 groups"}));
  EXPECT_TRUE(throws_error(
      [&] {
        Mesh::from_groups({tp, dp}, {"x"});
      },
      invalid, {"group_mesh_test.cc", "1 axis names for 2 groups"}));
  EXPECT_TRUE(throws_error(
      [&] {
        Mesh::from_groups({tp, twin_dp}, {"x", "y"});
      },
      invalid, {"[1,5]", "different root", "[0,1,2,3]"}));
  EXPECT_TRUE(throws_error(
      [&] {
        Mesh::from_groups({tp, tp}, {"x", "y"});
      },
      invalid, {"the same axes"}));
  EXPECT_TRUE(throws_error([&] { Mesh::from_group(tp, "2x"); }, invalid, {"\"2x\""}));
  Mesh cube({{"a", 2}, {"b", 2}, {"c", 2}});
  EXPECT_TRUE(throws_error(
      [&] {
        Mesh::from_groups({*cube.group({"a"}, 0), *cube.group({"b"}, 1)}, {"x", "y"});
      },
      invalid, {"[0,4]", "[1,3]", "no device in common"}));
}

}  // namespace
}  // namespace meshard
