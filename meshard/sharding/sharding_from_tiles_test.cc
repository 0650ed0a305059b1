#include <algorithm>

#include "meshard/sharding/sharding_testutil.h"
#include "meshard/sharding/tile_assignment.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

// sharding_from_tiles inverts tile_assignment, in both forms, and with replicas in any order.
TEST(ShardingFromTiles, RoundTrip) {
  TestRandom random;
  for (int round = 0; round < 1000; ++round) {
    Mesh mesh = random_mesh(random);
    std::size_t rank = static_cast<std::size_t>(random.between(0, 3));
    Sharding s = random_sharding(random, mesh, rank);
    if (round % 5 == 0) s = s.with_unreduced(s.unused_axes());
    TileAssignment tiles = tile_assignment(s);
    SCOPED_TRACE(s.to_string() + " " + tiles.to_string());
    ASSERT_TRUE(tiles.validate().ok());
    EXPECT_EQ(TileAssignment::parse(tiles.to_string()).value(), tiles);

    TileAssignment listed = tiles.listed();
    if (tiles.kind == TileKind::kTiled) {  // the devices of each tile, by slice
      std::vector<std::int64_t> positions;
      std::int64_t group = mesh.size() / s.num_tiles();
      for (std::size_t i = 0; i < listed.devices.size(); ++i) {
        std::int64_t tile = static_cast<std::int64_t>(i) / group;
        for (std::size_t d = rank; d-- > 0;) {
          EXPECT_EQ(s.tile_index(d, listed.devices[i]), tile % s.num_tiles(d));
          tile /= s.num_tiles(d);
        }
      }
      if (tiles.replicate_on_last_tile_dim)
        for (auto at = listed.devices.begin(); at != listed.devices.end(); at += group)
          std::shuffle(at, at + group, random);
    }
    for (const TileAssignment& form : {tiles, listed}) {
      Result<Sharding> back = sharding_from_tiles(mesh, form, rank);
      ASSERT_TRUE(back.ok()) << back.error().what();
      EXPECT_TRUE(back->is_equivalent_to(s, rank)) << back->to_string();
    }
  }
}

TEST(ShardingFromTiles, NamesTheAxes) {
  Mesh mesh({{"x", 2}, {"y", 4}});
  auto spec = [&](const char* text, std::size_t rank) {
    return sharding_from_tiles(mesh, TileAssignment::parse(text).value(), rank).value().spec();
  };
  EXPECT_EQ(spec("{devices=[8]<=[8]}", 1), P({"x", "y"}));
  EXPECT_EQ(spec("{devices=[8]0,4,1,5,2,6,3,7}", 1), P({"y", "x"}));
  EXPECT_EQ(spec("{devices=[4,2]<=[8]}", 2), P({"x", {"y", 1, 2}}, {{"y", 2, 2}}));
  EXPECT_EQ(spec("{devices=[1,2,4]<=[8] last_tile_dim_replicate}", 2), P(none, "x"));
  EXPECT_EQ(spec("{replicated}", 2), P(none, none));
}

TEST(ShardingFromTiles, ThatNoAxesGive) {
  Mesh mesh({{"x", 2}, {"y", 3}});
  auto error = [&](const char* text, std::size_t rank) {
    return sharding_from_tiles(mesh, TileAssignment::parse(text).value(), rank).error().message();
  };
  EXPECT_NE(error("{devices=[6]0,2,1,3,4,5}", 1).find("does not correspond to any axes"),
            std::string::npos);
  EXPECT_NE(error("{devices=[6]5,4,3,2,1,0}", 1).find("mesh<x=2, y=3>"), std::string::npos);
  EXPECT_NE(error("{devices=[3,2]<=[6]}", 2).find("mesh<x=2, y=3>"), std::string::npos);
  EXPECT_NE(error("{devices=[2,2]<=[4]}", 2).find("4 devices, but the mesh has 6"),
            std::string::npos);
  EXPECT_NE(error("{devices=[2,3]<=[6]}", 1).find("2 dimensions, but the tensor has 1"),
            std::string::npos);
  EXPECT_NE(error("{manual}", 1).find("{manual}"), std::string::npos);
  EXPECT_NE(error("{devices=[2,3]<=[6] last_tile_dims={manual}}", 1).find("manual"),
            std::string::npos);
}

// Without a mesh, every device gets the same tile as over the original mesh.
TEST(ShardingFromTiles, OverAMeshOfItsOwn) {
  TestRandom random;
  for (int round = 0; round < 500; ++round) {
    Mesh mesh = random_mesh(random);
    std::size_t rank = static_cast<std::size_t>(random.between(0, 3));
    Sharding s = random_sharding(random, mesh, rank);
    TileAssignment ids = tile_assignment(s).with_device_ids(mesh);
    Result<Sharding> back = sharding_from_tiles(ids, rank, mesh.size());
    ASSERT_TRUE(back.ok()) << s.to_string() << ": " << back.error().what();
    if (ids.kind == TileKind::kTiled) {
      EXPECT_TRUE(back->same_placement(s, rank)) << s.to_string() << " and " << back->to_string();
    }
    EXPECT_EQ(back->num_tiles(), s.num_tiles());
    EXPECT_EQ(back->mesh().size(), mesh.size());
  }
}

TEST(ShardingFromTiles, OverAMeshOfItsOwnByHand) {
  auto sharding = [](const char* text, std::size_t rank) {
    return sharding_from_tiles(TileAssignment::parse(text).value(), rank, 8);
  };
  EXPECT_EQ(sharding("{devices=[2,1,4]<=[8] last_tile_dim_replicate}", 2).value().to_string(),
            "Sharding(mesh<axis_0=2, axis_1=1, axis_2=4>, P(\"axis_0\", none))");
  EXPECT_EQ(sharding("{maximal device=3}", 2).value(),
            Sharding::replicated(Mesh({{"axis_0", 1}}, {3}), 2));
  EXPECT_EQ(sharding("{replicated}", 1).value(), Sharding::replicated(Mesh({{"axis_0", 8}}), 1));
  EXPECT_EQ(sharding("{devices=[2]5,2}", 1).value().mesh().device_ids().to_vector(),
            (std::vector<std::int64_t>{5, 2}));
  EXPECT_NE(sharding("{manual}", 1).error().message().find("does not specify a placement"),
            std::string::npos);
  EXPECT_NE(sharding("{devices=[2]<=[2]}", 3)
                .error()
                .message()
                .find("1 dimensions, but the tensor has 3"),
            std::string::npos);
  EXPECT_FALSE(sharding_from_tiles(TileAssignment(), 1, 0).ok());
}

}  // namespace
}  // namespace meshard
