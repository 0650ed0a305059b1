#include "meshard/runtime/move_shards.h"

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

}  // namespace
}  // namespace meshard
