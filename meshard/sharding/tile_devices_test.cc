#include <algorithm>
#include <functional>
#include <numeric>

#include "meshard/sharding/sharding_testutil.h"
#include "meshard/sharding/tile_grid.h"

namespace meshard {
namespace {

using Numbers = std::vector<std::int64_t>;

// Calculated by hand, over devices 7 6 / 5 4 / 3 2 / 1 0.
TEST(TileDevices, OfAPermutedMesh) {
  Mesh mesh({{"x", 4}, {"y", 2}}, {7, 6, 5, 4, 3, 2, 1, 0});
  Sharding s(mesh, P(none, "y"));
  EXPECT_EQ(tile_array(s), (TileArray{{2, 4}, {7, 5, 3, 1, 6, 4, 2, 0}}));
  EXPECT_EQ(tile_groups(s), (TileGroups{{1, 2}, {{7, 5, 3, 1}, {6, 4, 2, 0}}}));
  Sharding merged(mesh, P({"y", "x"}));
  EXPECT_EQ(tile_array(merged), (TileArray{{8}, {7, 5, 3, 1, 6, 4, 2, 0}}));
  EXPECT_EQ(tile_groups(merged).groups[1], Numbers{5});
  EXPECT_EQ(tile_array(Sharding(mesh, P())), (TileArray{{4, 2}, {7, 6, 5, 4, 3, 2, 1, 0}}));
}

// Each group holds the devices of one tile, and the array is the concatenation of the groups.
TEST(TileDevices, GroupsHoldOneTileEach) {
  TestRandom random;
  for (int round = 0; round < 300; ++round) {
    Mesh mesh = random_mesh(random);
    Sharding s = random_sharding(random, mesh, static_cast<std::size_t>(random.between(0, 3)));
    SCOPED_TRACE(s.to_string());
    TileGroups tiles = tile_groups(s);
    Numbers together;
    std::int64_t tile = 0;
    for (const Numbers& group : tiles.groups) {
      for (std::int64_t id : group) {
        std::int64_t number = 0;
        for (std::size_t d = 0; d < s.rank(); ++d)
          number = number * s.num_tiles(d) + s.tile_index(d, *mesh.position(id));
        EXPECT_EQ(number, tile);
        EXPECT_EQ(s.replica_id(*mesh.position(id)),
                  std::find(group.begin(), group.end(), id) - group.begin());
        together.push_back(id);
      }
      ++tile;
    }
    TileArray array = tile_array(s);
    EXPECT_EQ(array.device_ids, together);
    EXPECT_EQ(std::accumulate(array.shape.begin(), array.shape.end(), std::int64_t{1},
                              std::multiplies<>()),
              mesh.size());
  }
}

}  // namespace
}  // namespace meshard
