#include <map>

#include "meshard/mesh/device_groups.h"
#include "meshard/mesh/mesh_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using Groups = std::vector<std::vector<std::int64_t>>;

TEST(AxisGroups, Examples) {
  Mesh mesh({{"x", 2}, {"y", 4}});
  EXPECT_EQ(AxisGroups(mesh, {"x"}).groups(), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(AxisGroups(mesh, {"y"}).groups(), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(AxisGroups(mesh, {{"y", 1, 2}}).groups(), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(AxisGroups(mesh, {"y", "x"}).groups(), (Groups{{0, 1, 2, 3, 4, 5, 6, 7}}));
  EXPECT_EQ(AxisGroups(mesh, {}).count(), 8);
}

// Two positions are in one group if and only if they agree along all remaining axes. Members are in
// ascending order.
TEST(AxisGroups, PartThePositions) {
  TestRandom random;
  for (int round = 0; round < 100; ++round) {
    Mesh mesh = random_mesh(random);
    AxisList axes = random_axes(random, mesh);
    AxisGroups groups(mesh, axes);
    AxesIndex rest(mesh, remaining_axes(mesh, axes));
    std::map<std::int64_t, std::vector<std::int64_t>> expected;
    for (std::int64_t p = 0; p < mesh.size(); ++p) expected[rest(p)].push_back(p);
    ASSERT_EQ(groups.count(), static_cast<std::int64_t>(expected.size()));
    for (auto& [g, members] : expected) {
      ASSERT_EQ(groups.group(g), members);
      for (std::size_t k = 0; k < members.size(); ++k) {
        ASSERT_EQ(groups.group_of(members[k]), g);
        ASSERT_EQ(groups.member_of(members[k]), static_cast<std::int64_t>(k));
      }
    }
  }
}

TEST(AxisGroups, OutOfRange) {
  AxisGroups groups(Mesh({{"x", 2}, {"y", 4}}), {"x"});
  EXPECT_TRUE(throws_error([&] { groups.group(4); }, ErrorCode::kOutOfRange,
                           {"group index 4 is out of range for 4 groups"}));
}

}  // namespace
}  // namespace meshard
