#include "meshard/layout/picture.h"

#include <gtest/gtest.h>

#include "meshard/base/cat.h"
#include "tests/support/matchers.h"

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

// Values calculated by hand: (i, j) -> i + 2 j.
TEST(LayoutPicture, TwoModes) {
  EXPECT_EQ(picture(Layout({2, 3}, {1, 2})),
            "        3:2 →\n"
            "      ┌───┬───┬───┐\n"
            "2:1 ↓ │ 0 │ 2 │ 4 │\n"
            "      ├───┼───┼───┤\n"
            "      │ 1 │ 3 │ 5 │\n"
            "      └───┴───┴───┘\n");
}

TEST(LayoutPicture, OneModeAndNone) {
  EXPECT_EQ(picture(Layout(3, -1)),
            "  3:-1 →\n"
            "┌────┬────┬────┐\n"
            "│ 0  │ -1 │ -2 │\n"
            "└────┴────┴────┘\n");
  EXPECT_EQ(picture(Layout()),
            "┌───┐\n"
            "│ 0 │\n"
            "└───┘\n");
}

TEST(LayoutPicture, NestedModesAreReadAsOne) {
  EXPECT_EQ(picture(Layout({1, {2, 2}}, {0, {1, 10}})),
            "        (2,2):(1,10) →\n"
            "      ┌────┬────┬────┬────┐\n"
            "1:0 ↓ │ 0  │ 10 │ 1  │ 11 │\n"
            "      └────┴────┴────┴────┘\n");
}

TEST(LayoutPicture, MoreModesAreSeveralGrids) {
  EXPECT_EQ(picture(Layout({2, {1, 2}, 1, 2}, {8, {0, 4}, 0, 2})),
            "mode 0 = 0, mode 1 = 0\n"
            "        2:2 →\n"
            "      ┌───┬───┐\n"
            "1:0 ↓ │ 0 │ 2 │\n"
            "      └───┴───┘\n"
            "mode 0 = 0, mode 1 = 1\n"
            "        2:2 →\n"
            "      ┌───┬───┐\n"
            "1:0 ↓ │ 4 │ 6 │\n"
            "      └───┴───┘\n"
            "mode 0 = 1, mode 1 = 0\n"
            "        2:2 →\n"
            "      ┌────┬────┐\n"
            "1:0 ↓ │ 8  │ 10 │\n"
            "      └────┴────┘\n"
            "mode 0 = 1, mode 1 = 1\n"
            "        2:2 →\n"
            "      ┌────┬────┐\n"
            "1:0 ↓ │ 12 │ 14 │\n"
            "      └────┴────┘\n");
}

TEST(LayoutPicture, TooMany) {
  auto text = [] { picture(Layout(5000)); };
  auto svg = [] { picture_svg(Layout(5000)); };
  EXPECT_TRUE(throws_error(text, ErrorCode::kInvalidArgument, {"5000 values", "4096"}));
  EXPECT_TRUE(throws_error(svg, ErrorCode::kInvalidArgument, {"5000 values", "4096"}));
  EXPECT_NE(picture(Layout(4096)), "");
}

TEST(LayoutPictureSvg, EqualValuesHaveEqualColors) {
  std::string svg = picture_svg(Layout({2, 2}, {0, 1}));  // 0 1, 0 1
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  for (const char* part : {"hsl(0,", "hsl(137,", ">0</text>", ">1</text>"}) {
    std::size_t first = svg.find(part);
    ASSERT_NE(first, std::string::npos) << part;
    EXPECT_NE(svg.find(part, first + 1), std::string::npos) << part;
  }
  EXPECT_NE(svg.find(">2:1 →</text>"), std::string::npos);
  EXPECT_NE(svg.find(">2:0 ↓</text>"), std::string::npos);
}

}  // namespace
}  // namespace meshard
