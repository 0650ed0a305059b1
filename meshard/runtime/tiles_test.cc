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

}  // namespace
}  // namespace meshard
