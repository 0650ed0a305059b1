#include "meshard/mesh/device_groups.h"

#include <algorithm>
#include <map>

#include "meshard/mesh/mesh_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using Ids = std::vector<std::int64_t>;

TEST(DeviceGroups, InMeshOrder) {
  Mesh mesh({{"x", 2}, {"y", 2}, {"z", 2}});
  EXPECT_EQ(mesh.group({"y"}, 5)->to_vector(), (Ids{5, 7}));
  EXPECT_EQ(mesh.group({"x", "z"}, 2)->to_vector(), (Ids{2, 3, 6, 7}));
  EXPECT_EQ(mesh.group({"z", "x"}, 2)->to_vector(), (Ids{2, 6, 3, 7}));  // x varies faster
  EXPECT_EQ(mesh.group({}, 2)->to_vector(), (Ids{2}));
  EXPECT_EQ(mesh.groups({"z"}).to_vectors(), (std::vector<Ids>{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(Mesh({{"a", 8}}).group({AxisRef("a", 2, 2)}, 5)->to_vector(), (Ids{5, 7}));
  EXPECT_FALSE(mesh.group({"y"}, 8));
}

// A rank array with reversed rows and columns: mesh order and sorted order differ.
TEST(DeviceGroups, LocalRanks) {
  Mesh mesh({{"a", 4}, {"b", 2}}, {7, 6, 5, 4, 3, 2, 1, 0});
  EXPECT_EQ(*mesh.coordinate(3), (IntVector{2, 0}));
  EXPECT_EQ(mesh.group({"a"}, 3)->to_vector(), (Ids{7, 5, 3, 1}));
  EXPECT_EQ(mesh.local_rank({"a"}, 3), 2);
  EXPECT_EQ(mesh.local_rank({"a"}, 3, RankOrder::kSorted), 1);
  EXPECT_EQ(mesh.local_rank({"b"}, 3), 0);
  EXPECT_EQ(mesh.local_rank({"b"}, 3, RankOrder::kSorted), 1);
  EXPECT_FALSE(mesh.local_rank({"a"}, 8));
  EXPECT_FALSE(mesh.local_rank({"a"}, 8, RankOrder::kSorted));
  EXPECT_FALSE(mesh.group({"a"}, 3)->local_rank(2));
}

TEST(DeviceGroups, OneObjectForOneAxis) {
  Mesh mesh({{"dp", 2}, {"cp", 2}, {"tp", 2}});
  DeviceGroup group = *mesh.group({"dp", "cp"}, 3);
  EXPECT_TRUE(mesh.slice({"dp", "cp"}).flatten("x").group({"x"}, 5)->is_same_object(group));
  EXPECT_TRUE(mesh.slice({"dp", "cp"}).flatten("alias").group({"alias"}, 7)->is_same_object(group));
  EXPECT_FALSE(mesh.group({"dp", "cp"}, 2)->is_same_object(group));
  EXPECT_FALSE(mesh.group({"cp", "dp"}, 3)->is_same_object(group));
  EXPECT_TRUE(mesh.groups({"tp"}).is_same_object(mesh["tp"].groups({"tp"})));
  EXPECT_FALSE(mesh.groups({"tp"}).is_same_object(mesh.groups({"cp"})));
  Mesh other({{"dp", 2}, {"cp", 2}, {"tp", 2}});  // roots do not share groups
  EXPECT_FALSE(other.group({"dp", "cp"}, 3)->is_same_object(group));
}

TEST(DeviceGroups, PartsOfAnAxisThatIsNotCutEvenly) {
  Mesh flat = Mesh({{"b", 5}, {"c", 2}}).flatten({"c", "b"}, "x");  // (2,5):(1,2)
  EXPECT_EQ(flat.groups({{"x", 2, 5}}).count(), 2);
  EXPECT_TRUE(throws_error(
      [&] {
        flat.groups({{"x", 5, 2}});
      },
      ErrorCode::kInvalidArgument, {"cut"}));
}

TEST(DeviceGroups, Errors) {
  Mesh mesh({{"x", 2}, {"y", 4}});
  EXPECT_TRUE(throws_error(
      [&] {
        mesh.group({"y", "y"}, 0);
      },
      ErrorCode::kInvalidArgument, {"\"y\"", "twice"}));
  EXPECT_TRUE(throws_error([&] { mesh.groups({"z"}); }, ErrorCode::kNotFound, {"\"z\""}));
  EXPECT_TRUE(throws_error([&] { mesh.groups({"x"})[4]; }, ErrorCode::kOutOfRange,
                           {"group index 4 is out of range for 4 groups"}));
  EXPECT_TRUE(throws_error([&] { (*mesh.group({"x"}, 0))[2]; }, ErrorCode::kOutOfRange,
                           {"member index 2"}));
}

// Two devices are in one group if and only if their coordinates agree along all other axes.
TEST(DeviceGroups, PartTheDevices) {
  TestRandom random;
  for (int round = 0; round < 200; ++round) {
    Mesh mesh = random_mesh(random);
    AxisList axes = random_axes(random, mesh);
    AxesIndex along(mesh, axes), rest(mesh, remaining_axes(mesh, axes));
    std::map<std::int64_t, std::map<std::int64_t, std::int64_t>> expected;
    for (std::int64_t p = 0; p < mesh.size(); ++p) expected[rest(p)][along(p)] = mesh.device_id(p);
    DeviceGroups groups = mesh.groups(axes);
    ASSERT_EQ(groups.count(), static_cast<std::int64_t>(expected.size()));
    for (const auto& [number, members] : expected) {
      Ids ids;
      for (const auto& [place, id] : members) ids.push_back(id);
      DeviceGroup group = *groups.of(ids[0]);
      ASSERT_EQ(group.to_vector(), ids) << mesh.to_string() << to_string(axes);
      ASSERT_TRUE(groups[*groups.find(ids.back())].is_same_object(group));
      Ids sorted = ids;
      std::sort(sorted.begin(), sorted.end());
      for (std::size_t k = 0; k < ids.size(); ++k) {
        ASSERT_EQ(group.local_rank(ids[k]), static_cast<std::int64_t>(k));
        ASSERT_EQ(mesh.local_rank(axes, ids[k]), static_cast<std::int64_t>(k));
        ASSERT_EQ(group.sorted_local_rank(sorted[k]), static_cast<std::int64_t>(k));
        ASSERT_EQ(group.ranks()[static_cast<std::int64_t>(k)], ids[k]);
      }
    }
  }
}

}  // namespace
}  // namespace meshard
