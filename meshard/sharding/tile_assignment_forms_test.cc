#include <algorithm>

#include "meshard/sharding/sharding_testutil.h"
#include "meshard/sharding/tile_assignment.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TileAssignment tiles_of(const char* text) { return TileAssignment::parse(text).value(); }

TEST(TileAssignmentForms, Shortest) {
  auto shortest = [](const char* text) { return tiles_of(text).shortest().to_string(); };
  EXPECT_EQ(shortest("{devices=[4,2]<=[4,2]}"), "{devices=[4,2]<=[8]}");
  EXPECT_EQ(shortest("{devices=[2,1,4]<=[4,2]T(1,0)}"), "{devices=[2,1,4]<=[4,2]T(1,0)}");
  EXPECT_EQ(shortest("{devices=[1,8,1]<=[1,8]T(1,0)}"), "{devices=[1,8,1]<=[8]}");
  EXPECT_EQ(shortest("{devices=[1,1,8]<=[8,1]T(1,0) last_tile_dim_replicate}"), "{replicated}");
  EXPECT_EQ(shortest("{devices=[2,1]<=[2] last_tile_dim_replicate}"), "{devices=[2]<=[2]}");
  EXPECT_EQ(shortest("{devices=[1,1]<=[1]}"), "{replicated}");
  EXPECT_EQ(shortest("{devices=[2,2]1,0,3,2 last_tile_dims={replicated}}"),
            "{devices=[2,2]1,0,3,2 last_tile_dim_replicate}");
  EXPECT_EQ(shortest("{devices=[1,2,1]<=[2] last_tile_dims={manual, replicated}}"), "{manual}");
  EXPECT_EQ(shortest("{devices=[1,2,2]<=[4] last_tile_dims={manual, replicated}}"),
            "{devices=[1,2,2]<=[4] last_tile_dims={manual, replicated}}");
  EXPECT_EQ(shortest("{maximal device=3}"), "{maximal device=3}");
}

TEST(TileAssignmentForms, SortedReplicas) {
  auto sorted = [](const char* text) { return tiles_of(text).with_sorted_replicas().to_string(); };
  EXPECT_EQ(sorted("{devices=[2,2]3,1,2,0 last_tile_dim_replicate}"),
            "{devices=[2,2]1,3,0,2 last_tile_dim_replicate}");
  EXPECT_EQ(sorted("{devices=[1,2,2]3,1,2,0 last_tile_dims={unreduced, replicated}}"),
            "{devices=[1,2,2]1,3,0,2 last_tile_dims={unreduced, replicated}}");
  EXPECT_EQ(sorted("{devices=[4]3,1,2,0}"), "{devices=[4]3,1,2,0}");
}

TEST(TileAssignmentForms, DeviceIds) {
  Mesh mesh({{"x", 2}, {"y", 2}}, {9, 4, 7, 2});
  TileAssignment tiles = tile_assignment(Sharding(mesh, P("y", none)));
  EXPECT_EQ(tiles.to_string(), "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}");
  TileAssignment ids = tiles.with_device_ids(mesh);
  EXPECT_EQ(ids.to_string(), "{devices=[2,1,2]9,7,4,2 last_tile_dim_replicate}");
  EXPECT_EQ(ids.canonical().to_string(), "{devices=[2,1,2]7,9,2,4 last_tile_dim_replicate}");
  EXPECT_EQ(ids.with_positions(mesh).value(), tiles.listed());
  EXPECT_EQ(tiles_of("{maximal device=2}").with_device_ids(mesh).to_string(), "{maximal device=7}");
  EXPECT_NE(tiles_of("{devices=[2]4,5}")
                .with_positions(mesh)
                .error()
                .message()
                .find("device 5 of {devices=[2]4,5} is not in mesh<x=2, y=2"),
            std::string::npos);
}

// Canonical forms are equal if and only if every device holds the same tile.
TEST(TileAssignmentForms, CanonicalTellsPlacementsApart) {
  TestRandom random;
  int equal = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::int64_t> ids = {0, 1, 2, 3};
    Mesh a({{"x", 2}, {"y", 2}});
    std::shuffle(ids.begin(), ids.end(), random);
    Mesh b = round % 2 ? Mesh({{"x", 2}, {"y", 2}}, ids) : Mesh({{"z", 4}}, ids);
    Sharding s = random_sharding(random, a, 2), t = random_sharding(random, b, 2);
    bool same = s.same_placement(t, 2);
    EXPECT_EQ(tile_assignment(s).with_device_ids(a).canonical() ==
                  tile_assignment(t).with_device_ids(b).canonical(),
              same)
        << s.to_string() << " and " << t.to_string();
    equal += same;
  }
  EXPECT_GT(equal, 100);
  EXPECT_LT(equal, 2900);
}

}  // namespace
}  // namespace meshard
