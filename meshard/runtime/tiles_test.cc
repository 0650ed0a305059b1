#include "meshard/runtime/tiles.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

TEST(SameTiles, AreCountedByDimension) {
  Mesh a({{"x", 2}, {"y", 2}}), b({{"z", 4}}, {7, 6, 5, 4});
  Sharding rows(a, P("x", none)), both(a, P(axes("x", "y"), none));
  EXPECT_TRUE(has_same_tiles(&both, Sharding(b, P("z", none))));
  EXPECT_TRUE(has_same_tiles(&both, Sharding(b, P("z")))) << "what is not named is not split";
  EXPECT_FALSE(has_same_tiles(&rows, Sharding(b, P("z", none))));
  EXPECT_FALSE(has_same_tiles(&both, Sharding(b, P(none, "z"))));
  EXPECT_TRUE(has_same_tiles(nullptr, Sharding(b, P(none))));
  EXPECT_FALSE(has_same_tiles(nullptr, Sharding(b, P("z"))));
  EXPECT_FALSE(has_same_tiles(&rows, rows.with_unreduced({AxisRef("y")})));
}

TEST(Tiles, OnWhichDevicesTheyAre) {
  Mesh grid({{"x", 2}, {"y", 4}}), column({{"x", 2}}, {1, 5}), swapped({{"x", 2}}, {5, 1});
  Sharding rows(grid, P("x"));
  EXPECT_TRUE(has_tiles_in_place(rows, Sharding(column, P("x"))));
  EXPECT_FALSE(has_tiles_in_place(rows, Sharding(swapped, P("x"))));
  EXPECT_FALSE(has_tiles_in_place(rows, Sharding(column, P(none))));
  EXPECT_FALSE(has_tiles_in_place(Sharding(column, P("x")), rows)) << "on fewer devices";
  EXPECT_TRUE(is_whole_on(Sharding(grid, P(none)), column));
  EXPECT_FALSE(is_whole_on(rows, column));
  EXPECT_FALSE(is_whole_on(Sharding(column, P(none)), grid));
  Mesh four({{"a", 4}}, {0, 1, 4, 5});
  EXPECT_EQ(part_in_place(rows, Sharding(four, P("a"))), Sharding(four, P(AxisRef("a", 1, 2))));
  EXPECT_FALSE(part_in_place(rows, Sharding(four, P(none, "a")))) << "no device has all rows";
  EXPECT_FALSE(part_in_place(rows, Sharding(Mesh({{"a", 4}}, {0, 4, 1, 5}), P("a"))));
}

TEST(Tiles, ThePartOfEachPosition) {
  Sharding rows(Mesh({{"x", 4}, {"y", 2}}), P("x"));
  EXPECT_EQ(shard_type_of({DType::f32, {5, 3}}, rows), (TensorType{DType::f32, {2, 3}}));
  EXPECT_EQ(box_of(rows, {5, 3}, 4), (Box{{4, 5}, {0, 3}}));
  EXPECT_EQ(box_shape(box_of(rows, {5, 3}, 7)).size(), 0) << "the last part is only padding";
  EXPECT_EQ(tile_number(rows, 4), 2);
  EXPECT_EQ(tile_number(rows, 5), 2) << "a replica";
}

// Uneven sizes, with empty tiles, and replicas.
TEST(Tiles, ATilingHasTheBoxesOfTheShards) {
  const Sharding sharding(Mesh({{"x", 4}, {"copy", 2}, {"y", 2}}), P("x", "y"));
  const Shape shape{5, 3};
  const Tiling tiling(sharding, shape);
  ASSERT_EQ(tiling.size(), 8);
  EXPECT_EQ(tiling.shard_shape(), Shape({2, 2}));
  const std::vector<std::vector<std::int64_t>> holders = tiling.holders();
  std::int64_t positions = 0;
  for (std::int64_t tile = 0; tile < tiling.size(); ++tile)
    for (std::int64_t position : holders[static_cast<std::size_t>(tile)]) {
      EXPECT_EQ(tiling.box(tile), box_of(sharding, shape, position));
      ++positions;
    }
  EXPECT_EQ(positions, sharding.mesh().size());
  // Rows 1 to 4 are in the tiles 0 to 2 of the first dimension.
  const Box box{{1, 5}, {2, 3}};
  EXPECT_EQ(tiling.count_in(box), (IntVector{3, 1}));
  std::vector<std::int64_t> met;
  tiling.for_each_in(box, [&](std::int64_t tile) { met.push_back(tile); });
  EXPECT_EQ(met, (std::vector<std::int64_t>{1, 3, 5}));
  EXPECT_EQ(tiling.count_in({{5, 5}, {0, 3}}), (IntVector{0, 2}));
}

}  // namespace
}  // namespace meshard
