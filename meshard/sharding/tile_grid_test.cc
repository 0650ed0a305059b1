#include "meshard/sharding/tile_grid.h"

#include <gtest/gtest.h>

#include "meshard/sharding/sharding_testutil.h"

namespace meshard {
namespace {

TEST(TileGrid, CellsHoldThePositionsOfATile) {
  std::vector<TileGrid> grids = tile_grids(Sharding(Mesh({{"x", 2}, {"y", 2}}), P("y", none)));
  ASSERT_EQ(grids.size(), 1u);
  EXPECT_EQ(grids[0].title, "");
  EXPECT_EQ(grids[0].down, "dimension 0: y");
  EXPECT_EQ(grids[0].across, "dimension 1: none");
  using Cells = std::vector<std::vector<std::vector<std::int64_t>>>;
  EXPECT_EQ(grids[0].cells, (Cells{{{0, 2}}, {{1, 3}}}));
}

TEST(TileGrid, EveryPositionIsDrawnOnce) {
  TestRandom random;
  for (int round = 0; round < 100; ++round) {
    Mesh mesh = random_mesh(random);
    Sharding s = random_sharding(random, mesh, static_cast<std::size_t>(random.between(0, 4)));
    std::vector<int> seen(static_cast<std::size_t>(mesh.size()), 0);
    for (const TileGrid& grid : tile_grids(s))
      for (const auto& row : grid.cells)
        for (const auto& cell : row)
          for (std::int64_t position : cell) {
            ++seen[static_cast<std::size_t>(position)];
            for (std::size_t d = 0; d < s.rank(); ++d)
              EXPECT_EQ(s.tile_index(d, position), s.tile_index(d, cell[0]));
          }
    EXPECT_EQ(seen, std::vector<int>(seen.size(), 1)) << s.to_string();
  }
}

}  // namespace
}  // namespace meshard
