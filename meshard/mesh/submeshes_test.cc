#include "meshard/mesh/submeshes.h"

#include <set>

#include "meshard/mesh/mesh_testutil.h"

namespace meshard {
namespace {

Overlap by_listing(const Mesh& a, const Mesh& b) {
  std::vector<std::int64_t> first = a.device_ids().to_vector(), second = b.device_ids().to_vector();
  std::set<std::int64_t> in_a(first.begin(), first.end()), in_b(second.begin(), second.end());
  std::size_t common = 0;
  for (std::int64_t id : in_a) common += in_b.contains(id);
  if (common == 0) return Overlap::kNone;
  if (common == in_a.size() && common == in_b.size()) return Overlap::kSame;
  if (common == in_a.size()) return Overlap::kFirstInSecond;
  return common == in_b.size() ? Overlap::kSecondInFirst : Overlap::kSome;
}

TEST(Overlap, Examples) {
  Mesh mesh({{"a", 2}, {"b", 4}}), tail({{"x", 4}}, {6, 7, 8, 9}), far({{"x", 2}}, {20, 21});
  EXPECT_EQ(overlap(mesh, mesh.permute({"b", "a"})), Overlap::kSame);
  EXPECT_EQ(overlap(mesh["a"], mesh["b"]), Overlap::kSame);  // slices have all rows
  EXPECT_EQ(overlap(*mesh.submesh("b", 0), mesh), Overlap::kFirstInSecond);
  EXPECT_EQ(overlap(mesh, *mesh.submesh("a", 3)), Overlap::kSecondInFirst);
  EXPECT_EQ(overlap(mesh, tail), Overlap::kSome);
  EXPECT_EQ(overlap(mesh, far), Overlap::kNone);
  EXPECT_EQ(to_string(Overlap::kSecondInFirst), "second in first");
}

TEST(Overlap, AsByListing) {
  TestRandom random;
  for (int round = 0; round < 300; ++round) {
    Mesh a = random_mesh(random), b = random_mesh(random);
    ASSERT_EQ(overlap(a, b), by_listing(a, b)) << a.to_string() << ' ' << b.to_string();
    if (a.rank() == 0) continue;
    Submeshes parts = a.submeshes(a.axes()[0].name);
    Mesh one = parts[random.between(0, parts.size() - 1)];
    ASSERT_EQ(overlap(one, b), by_listing(one, b)) << one.to_string() << ' ' << b.to_string();
    ASSERT_EQ(overlap(a, one), by_listing(a, one)) << a.to_string() << ' ' << one.to_string();
  }
}

TEST(IsSubmeshOf, RowsWithinRowsOfOneRoot) {
  Mesh mesh({{"pp", 2}, {"dp", 2}, {"tp", 2}});
  EXPECT_TRUE(mesh["tp"].is_submesh_of(mesh));
  EXPECT_TRUE(mesh["tp"].is_submesh_of(mesh.slice({"dp", "tp"})));
  EXPECT_TRUE(mesh["tp"].is_submesh_of(mesh.slice({"tp", "dp"})));
  EXPECT_FALSE(mesh["tp"].is_submesh_of(mesh["dp"]));
  EXPECT_FALSE(mesh.is_submesh_of(mesh["tp"]));
  Mesh stage = *mesh.submesh({"dp", "tp"}, 5);
  EXPECT_TRUE(stage.is_submesh_of(mesh));
  EXPECT_TRUE(stage.is_submesh_of(mesh.slice({"dp", "tp"})));
  EXPECT_TRUE(mesh.submesh("tp", 6)->is_submesh_of(stage));
  EXPECT_FALSE(mesh.submesh("tp", 2)->is_submesh_of(stage));
  EXPECT_FALSE(mesh["tp"].is_submesh_of(stage));  // it has rows outside
  Mesh six({{"a", 3}, {"b", 2}});                 // {0,3} is within none of {0,2,4}, {1,3,5}
  EXPECT_FALSE(six.reshape({{"a", 2}, {"p", 3}}).submesh("a", 0)->is_submesh_of(six["a"]));
  Mesh nines = Mesh({{"a", 3}, {"c", 6}});  // {0..5} is within {0..8}, {6..11} within no row
  Mesh rows_of_nine = nines.reshape({{"r", 2}, {"s", 9}})["s"];
  EXPECT_TRUE(nines.submesh("c", 0)->is_submesh_of(rows_of_nine));
  EXPECT_FALSE(nines.submesh("c", 6)->is_submesh_of(rows_of_nine));
  EXPECT_FALSE(nines["c"].is_submesh_of(rows_of_nine));
  EXPECT_FALSE(stage.is_submesh_of(Mesh({{"pp", 2}, {"dp", 2}, {"tp", 2}})));
}

}  // namespace
}  // namespace meshard
