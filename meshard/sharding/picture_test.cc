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

// With more than two dimensions, only the split ones are drawn.
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

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(ShardingPictureSvg, OneStripeADeviceAndOneFrameATile) {
  std::string svg = picture_svg(Sharding(picture_mesh22(), P("x", none)));
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_EQ(count(svg, "fill=\"hsl("), 4u);  // one stripe per device
  EXPECT_EQ(count(svg, "stroke="), 2u);      // one frame per tile
  EXPECT_EQ(count(svg, ">4,5</text>"), 1u);
  EXPECT_EQ(count(svg, ">6,7</text>"), 1u);
}

TEST(ShardingPictureSvg, DevicesHaveColorsOfTheirOwn) {
  std::string svg = picture_svg(Sharding(picture_mesh22(), P({"x", "y"})));
  for (const char* color : {"hsl(0,", "hsl(137,", "hsl(274,", "hsl(51,"})
    EXPECT_EQ(count(svg, color), 1u) << color;
}

TEST(ShardingPictureSvg, TooMany) {
  Sharding s(Mesh({{"x", 5000}}), P("x"));
  EXPECT_TRUE(throws_error([&] { picture_svg(s); }, ErrorCode::kInvalidArgument, {"5000"}));
}

TEST(ShardingPicture, TooMany) {
  Sharding s(Mesh({{"x", 5000}}), P("x"));
  EXPECT_TRUE(throws_error([&] { picture(s); }, ErrorCode::kInvalidArgument, {"5000"}));
}

}  // namespace
}  // namespace meshard
