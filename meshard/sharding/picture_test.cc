#include "meshard/sharding/picture.h"

#include "tests/support/matchers.h"

namespace meshard {
namespace {

Mesh picture_mesh22() { return Mesh({{"x", 2}, {"y", 2}}, {4, 5, 6, 7}); }

TEST(ShardingPicture, TwoDimensions) {
  EXPECT_EQ(picture(Sharding(picture_mesh22(), P("y", none))),
            "                   dimension 1: none →\n"
            "                 ┌─────┐\n"
            "dimension 0: y ↓ │ 4,6 │\n"
            "                 ├─────┤\n"
            "                 │ 5,7 │\n"
            "                 └─────┘\n");
}

TEST(ShardingPicture, OneDimensionAndNone) {
  EXPECT_EQ(picture(Sharding(picture_mesh22(), P({"y", "x"}))),
            "  dimension 0: y,x →\n"
            "┌───┬───┬───┬───┐\n"
            "│ 4 │ 6 │ 5 │ 7 │\n"
            "└───┴───┴───┴───┘\n");
  EXPECT_EQ(picture(Sharding(picture_mesh22(), P())),
            "┌─────────┐\n"
            "│ 4,5,6,7 │\n"
            "└─────────┘\n");
}

// Of more than two dimensions the split ones are drawn.
TEST(ShardingPicture, ManyDimensions) {
  std::string text = picture(Sharding(picture_mesh22(), P(none, "x", none, "y")));
  EXPECT_NE(text.find("dimension 1: x ↓ │ 4 │ 5 │"), std::string::npos) << text;
  EXPECT_NE(text.find("dimension 3: y →"), std::string::npos) << text;
  Mesh cube({{"a", 2}, {"b", 2}, {"c", 2}});
  std::string grids = picture(Sharding(cube, P("a", "b", "c")));
  EXPECT_NE(grids.find("dimension 0: a = 0\n"), std::string::npos) << grids;
  EXPECT_NE(grids.find("dimension 0: a = 1\n"), std::string::npos) << grids;
  EXPECT_LT(grids.find("│ 2 │ 3 │"), grids.find("a = 1"));
  EXPECT_GT(grids.find("│ 4 │ 5 │"), grids.find("a = 1"));
}

TEST(ShardingPicture, TooMany) {
  Sharding s(Mesh({{"x", 5000}}), P("x"));
  EXPECT_TRUE(throws_error([&] { picture(s); }, ErrorCode::kInvalidArgument, {"5000"}));
}

}  // namespace
}  // namespace meshard
