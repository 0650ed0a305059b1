#include "meshard/sharding/replica_groups.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "meshard/mesh/device_groups.h"
#include "meshard/mesh/mesh_testutil.h"

namespace meshard {
namespace {

using Groups = std::vector<std::vector<std::int64_t>>;

std::string axes_text(const Mesh& mesh, const Groups& groups) {
  std::optional<AxisList> axes = axes_of_groups(mesh, groups);
  return axes ? to_string(*axes) : "none";
}

TEST(ReplicaGroups, Examples) {
  Mesh mesh({{"x", 2}, {"y", 4}});
  EXPECT_EQ(axes_text(mesh, {{0, 4}, {1, 5}, {2, 6}, {3, 7}}), "{\"x\"}");
  EXPECT_EQ(axes_text(mesh, {{3, 1, 2, 0}, {4, 5, 7, 6}}), "{\"y\"}");
  EXPECT_EQ(axes_text(mesh, {{4, 6}, {0, 2}, {1, 3}, {5, 7}}), "{\"y\":(1)2}");
  EXPECT_EQ(axes_text(mesh, {{0, 2, 4, 6}, {1, 3, 5, 7}}), "{\"x\", \"y\":(1)2}");
  EXPECT_EQ(axes_text(mesh, {{0, 1, 2, 3, 4, 5, 6, 7}}), "{\"x\", \"y\"}");
  EXPECT_EQ(axes_text(mesh, {}), "{\"x\", \"y\"}");
  EXPECT_EQ(axes_text(mesh, {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}}), "{}");
}

TEST(ReplicaGroups, ThatNoAxesGive) {
  Mesh mesh({{"x", 2}, {"y", 4}});
  EXPECT_EQ(axes_text(mesh, {{0, 5}, {1, 4}, {2, 6}, {3, 7}}), "none");
  EXPECT_EQ(axes_text(mesh, {{0, 4}, {1, 5}, {2, 7}, {3, 6}}), "none");
  EXPECT_EQ(axes_text(mesh, {{0, 4}, {1, 5}}), "none");
  EXPECT_EQ(axes_text(mesh, {{0, 4}, {0, 4}, {2, 6}, {3, 7}}), "none");
  EXPECT_EQ(axes_text(mesh, {{0, 4}, {1, 5}, {2, 6}, {3, 8}}), "none");
  EXPECT_EQ(axes_text(mesh, {{0, 4}, {1, 5}, {2, 6}, {3}}), "none");
  EXPECT_EQ(axes_text(mesh, {{0, 3}, {1, 4}, {2, 5}, {6, 7}}), "none");
  EXPECT_EQ(axes_text(mesh, {{}}), "none");
}

TEST(ReplicaGroups, Iota) {
  Mesh mesh({{"x", 2}, {"y", 4}});
  auto text = [&](const IotaGroups& groups) {
    std::optional<AxisList> axes = axes_of_groups(mesh, groups);
    return axes ? to_string(*axes) : "none";
  };
  EXPECT_EQ(text({2, 4, {8}, {0}}), "{\"y\"}");
  EXPECT_EQ(text({4, 2, {2, 4}, {1, 0}}), "{\"x\"}");
  EXPECT_EQ(text({1, 8, {8}, {0}}), "{\"x\", \"y\"}");
  EXPECT_EQ(text({4, 2, {2, 2, 2}, {0, 2, 1}}), "{\"y\":(1)2}");
  EXPECT_EQ(text({2, 2, {4}, {0}}), "none");
  EXPECT_EQ(text({2, 4, {8}, {1}}), "none");
}

TEST(ReplicaGroups, OfAxesListedAndCompact) {
  Mesh mesh({{"x", 2}, {"y", 4}});
  IotaGroups x = replica_groups(mesh, {"x"});
  EXPECT_EQ(x.to_string(), "[4,2]<=[2,4]T(1,0)");
  EXPECT_EQ(x.listed(), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(replica_groups(mesh, {"y"}).to_string(), "[2,4]<=[8]");
  EXPECT_EQ(replica_groups(mesh, {"y", "x"}).to_string(), "[1,8]<=[8]");
  EXPECT_EQ(replica_groups(mesh, {}).to_string(), "[8,1]<=[8]");
  EXPECT_EQ(replica_groups(Mesh(), {}).to_string(), "[1,1]<=[1]");
}

TEST(ReplicaGroups, OfAxesOfDerivedMeshes) {
  Mesh mesh({{"x", 2}, {"y", 4}, {"z", 2}});
  Mesh flat = mesh.slice({"x", "z"}).flatten("xz");
  EXPECT_EQ(replica_groups(flat, {"xz"}), replica_groups(mesh, {"x", "z"}));
  Mesh split = mesh.unflatten("y", {{"outer", 2}, {"inner", 2}});
  EXPECT_EQ(replica_groups(split, {"outer"}), replica_groups(mesh, {AxisRef("y", 1, 2)}));
  EXPECT_EQ(replica_groups(mesh.permute({"z", "y", "x"}), {"y"}), replica_groups(mesh, {"y"}));
  Mesh pair = *mesh.submesh({"x", "y"}, 3);  // has its own numbering: devices 1, 3, 5, ...
  EXPECT_EQ(replica_groups(pair, {"y"}).to_string(), "[2,4]<=[8]");
}

// When listed, they are the groups of positions that differ only along the axes.
TEST(ReplicaGroups, AgreeWithTheGroupsOfThePositions) {
  TestRandom random;
  for (int round = 0; round < 200; ++round) {
    Mesh mesh = random_mesh(random);
    AxisList axes = random_axes(random, mesh);
    ASSERT_EQ(replica_groups(mesh, axes).listed(), AxisGroups(mesh, axes).groups())
        << mesh.to_string() << to_string(axes);
  }
}

// The axes of any groups can be recovered, even from shuffled groups.
TEST(ReplicaGroups, RoundTrip) {
  TestRandom random;
  for (int round = 0; round < 300; ++round) {
    Mesh mesh = random_mesh(random);
    AxisList axes = random_axes(random, mesh);
    AxisGroups expected(mesh, axes);
    Groups groups = expected.groups();
    for (auto& group : groups) std::shuffle(group.begin(), group.end(), random);
    std::shuffle(groups.begin(), groups.end(), random);
    std::optional<AxisList> found = axes_of_groups(mesh, groups);
    ASSERT_TRUE(found) << mesh.to_string() << to_string(axes);
    EXPECT_EQ(AxisGroups(mesh, *found), expected) << mesh.to_string() << to_string(axes);
  }
}

}  // namespace
}  // namespace meshard
