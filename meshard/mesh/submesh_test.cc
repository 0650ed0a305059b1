#include "meshard/mesh/device_groups.h"
#include "meshard/mesh/submeshes.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using Ids = std::vector<std::int64_t>;

TEST(Submesh, OfAnyDevice) {
  Mesh mesh({{"pp", 2}, {"dp", 2}, {"tp", 2}});
  Mesh stage = *mesh.submesh({"dp", "tp"}, 5);
  EXPECT_EQ(stage.device_ids().to_vector(), (Ids{4, 5, 6, 7}));
  EXPECT_EQ(stage.rows(), 1);
  EXPECT_FALSE(stage.is_root());
  EXPECT_TRUE(stage.is_base());
  EXPECT_TRUE(stage.root().is_same_object(mesh));
  EXPECT_EQ(*stage.coordinate(6), (IntVector{1, 0}));
  EXPECT_FALSE(stage.coordinate(3));
  EXPECT_FALSE(mesh.submesh({"dp"}, 8));
  EXPECT_EQ(mesh.submesh({"tp", "pp"}, 3)->device_ids().to_vector(), (Ids{2, 6, 3, 7}));
  EXPECT_TRUE(
      throws_error([&] { mesh.submesh("x", 0); }, ErrorCode::kNotFound, {"submesh_test.cc"}));
}

TEST(Submesh, EqualsAMeshMadeOfItsDevices) {
  Mesh mesh({{"pp", 2}, {"dp", 2}, {"tp", 2}});
  Mesh stage = *mesh.submesh({"dp", "tp"}, 5), made({{"dp", 2}, {"tp", 2}}, {4, 5, 6, 7});
  EXPECT_EQ(stage, made);
  EXPECT_EQ(stage.hash(), made.hash());
  EXPECT_EQ(stage.permute({"tp", "dp"}), made.permute({"tp", "dp"}));
  EXPECT_EQ(stage["tp"], made["tp"]);
  EXPECT_NE(stage["tp"], mesh["tp"]);
  EXPECT_FALSE(stage.same_root(made));
  EXPECT_EQ(Mesh::parse(stage.to_string()).value(), stage);
  EXPECT_EQ(Mesh::parse(stage["tp"].to_string()).value(), stage["tp"]);
}

// Equal meshes number their rows equally, in the order of the submesh's axes.
TEST(Submesh, RowsFollowItsAxes) {
  Mesh turned = *Mesh({{"a", 2}, {"b", 2}, {"c", 2}}).submesh({"c", "b"}, 4);
  Mesh made({{"c", 2}, {"b", 2}}, {4, 6, 5, 7});
  Mesh none = turned.slice(AxisNames({})), same = made.slice(AxisNames({}));
  EXPECT_EQ(none, same);
  for (std::int64_t device : {4, 5, 6, 7}) EXPECT_EQ(none.row(device), same.row(device));
  EXPECT_EQ(turned.device_ids().to_vector(), none.device_ids().to_vector());
  EXPECT_TRUE(throws_error(
      [&] {
        turned.unsqueeze("o", 0).submesh({"o", "o"}, 4);
      },
      ErrorCode::kInvalidArgument, {"\"o\" is named twice"}));
}

TEST(Submesh, OperationsStayInside) {
  Mesh mesh({{"pp", 3}, {"dp", 2}, {"tp", 4}});
  Mesh stage = *mesh.submesh({"dp", "tp"}, 20);  // devices 16..23
  EXPECT_EQ(stage["tp"].rows(), 2);
  EXPECT_EQ(stage["tp"].ranks(1), RankMap::affine(20, 1, 4));
  EXPECT_EQ(stage["tp"].row(21), 1);
  EXPECT_FALSE(stage["tp"].row(13));
  EXPECT_EQ(stage.flatten("all").rank_map(), RankMap::affine(16, 1, 8));
  Mesh pair = *stage.unflatten("tp", {{"a", 2}, {"b", 2}}).submesh("a", 21);
  EXPECT_EQ(pair.device_ids().to_vector(), (Ids{21, 23}));
  EXPECT_TRUE(pair.root().is_same_object(mesh));
  EXPECT_TRUE(pair.is_submesh_of(stage));
}

// The groups of a submesh are those of the mesh that it was cut from.
TEST(Submesh, SharesTheGroupsOfItsRoot) {
  Mesh mesh({{"pp", 2}, {"dp", 2}, {"tp", 2}});
  Mesh stage = *mesh.submesh({"dp", "tp"}, 5);
  EXPECT_TRUE(stage.group({"tp"}, 6)->is_same_object(*mesh.group({"tp"}, 6)));
  EXPECT_EQ(stage.groups({"tp"}).count(), 2);
  EXPECT_EQ(stage.groups({"tp"}).to_vectors(), (std::vector<Ids>{{4, 5}, {6, 7}}));
  EXPECT_FALSE(stage.group({"tp"}, 1));
  EXPECT_FALSE(stage.groups({"tp"}).of(1));
}

TEST(Submeshes, AreAllOfThemLazily) {
  Mesh mesh({{"pp", 2}, {"dp", 2}, {"tp", 2}});
  Submeshes stages = mesh.submeshes({"dp", "tp"});
  EXPECT_EQ(stages.size(), 2);
  std::vector<Ids> seen;
  for (const Mesh& stage : mesh.submeshes("dp")) seen.push_back(stage.device_ids().to_vector());
  EXPECT_EQ(seen, (std::vector<Ids>{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  // A slice has the submeshes of all its rows.
  EXPECT_EQ(mesh.slice({"pp", "tp"}).submeshes("tp").size(), 4);
  EXPECT_EQ(mesh.submesh("dp", 5), stages[1].submesh("dp", 5));
  EXPECT_TRUE(throws_error([&] { stages[2]; }, ErrorCode::kOutOfRange,
                           {"submesh index 2 is out of range: the number of submeshes is 2"}));
  Mesh huge({{"a", 1 << 20}, {"b", 1 << 20}});
  EXPECT_EQ(huge.submeshes("b").size(), 1 << 20);
  EXPECT_EQ(huge.submeshes("a")[7].device_id(3), (std::int64_t{3} << 20) + 7);
}

TEST(Submesh, OfAllDevicesIsAView) {
  Mesh mesh({{"a", 2}, {"b", 2}});
  EXPECT_TRUE(mesh.submesh({"b", "a"}, 0)->base().is_same_object(mesh));
}

TEST(AsRoot, IsIndependent) {
  Mesh mesh({{"a", 2}, {"b", 2}});
  Mesh own = mesh.submesh("b", 2)->as_root();
  EXPECT_TRUE(own.is_root());
  EXPECT_EQ(own.rank_map(), RankMap::listed({2, 3}));
  EXPECT_FALSE(own.same_root(mesh));
}

}  // namespace
}  // namespace meshard
