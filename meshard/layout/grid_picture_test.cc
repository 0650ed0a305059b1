#include "meshard/layout/grid_picture.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

TEST(GridPicture, WidthsAreCountedInCharacters) {
  Grid grid{.down = "ä", .across = "b", .cells = {{{"ü"}, {"22"}}}};
  EXPECT_EQ(grid_picture(std::vector{grid}),
            "      b →\n"
            "    ┌────┬────┐\n"
            "ä ↓ │ ü  │ 22 │\n"
            "    └────┴────┘\n");
}

TEST(GridPicture, WithoutLabels) {
  EXPECT_EQ(grid_picture(std::vector{Grid{.cells = {{{"1"}}, {{"2"}}}}}),
            "┌───┐\n"
            "│ 1 │\n"
            "├───┤\n"
            "│ 2 │\n"
            "└───┘\n");
}

TEST(GridPicture, SeveralWithTitles) {
  Grid first{.title = "one", .cells = {{{"1"}}}}, second{.title = "two", .cells = {{{"22"}}}};
  EXPECT_EQ(grid_picture(std::vector{first, second}),
            "one\n"
            "┌───┐\n"
            "│ 1 │\n"
            "└───┘\n"
            "two\n"
            "┌────┐\n"
            "│ 22 │\n"
            "└────┘\n");
}

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(GridPictureSvg, OneStripeAColorAndOneFrameACell) {
  Grid grid{.title = "<&>", .cells = {{{"a", {0, 1}}, {"b", {0}}}}};
  std::string svg = grid_picture_svg(std::vector{grid});
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_EQ(times(svg, "fill=\"hsl("), 3u);
  EXPECT_EQ(times(svg, "stroke="), 2u);
  EXPECT_EQ(times(svg, ">a</text>"), 1u);
  EXPECT_EQ(times(svg, "&lt;&amp;>"), 1u);
}

// Hues are 137 degrees apart; negative numbers go around the color circle in the other direction.
TEST(GridPictureSvg, NumbersHaveColorsOfTheirOwn) {
  Grid grid{.cells = {{{"", {0}}, {"", {1}}, {"", {2}}, {"", {3}}, {"", {-1}}}}};
  std::string svg = grid_picture_svg(std::vector{grid});
  for (const char* color : {"hsl(0,", "hsl(137,", "hsl(274,", "hsl(51,", "hsl(223,"})
    EXPECT_EQ(times(svg, color), 1u) << color;
}

}  // namespace
}  // namespace meshard
