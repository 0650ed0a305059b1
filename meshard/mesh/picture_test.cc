#include "meshard/mesh/picture.h"

#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(MeshPicture, TwoAxes) {
  EXPECT_EQ(picture(Mesh({{"data", 2}, {"model", 2}}, {4, 15, 6, 7})),
            "         model →\n"
            "       ┌────┬────┐\n"
            "data ↓ │ 4  │ 15 │\n"
            "       ├────┼────┤\n"
            "       │ 6  │ 7  │\n"
            "       └────┴────┘\n");
}

TEST(MeshPicture, OneAxisAndNone) {
  EXPECT_EQ(picture(Mesh({{"x", 2}})),
            "  x →\n"
            "┌───┬───┐\n"
            "│ 0 │ 1 │\n"
            "└───┴───┘\n");
  EXPECT_EQ(picture(Mesh()),
            "┌───┐\n"
            "│ 0 │\n"
            "└───┘\n");
}

TEST(MeshPicture, ThreeAxesAreSeveralGrids) {
  std::string text = picture(Mesh({{"a", 2}, {"b", 1}, {"c", 2}}));
  EXPECT_EQ(text,
            "a = 0\n"
            "      c →\n"
            "    ┌───┬───┐\n"
            "b ↓ │ 0 │ 1 │\n"
            "    └───┴───┘\n"
            "a = 1\n"
            "      c →\n"
            "    ┌───┬───┐\n"
            "b ↓ │ 2 │ 3 │\n"
            "    └───┴───┘\n");
}

// Devices by hand: the slice "model" has one row for each index along "data" and "pipe".
TEST(MeshPicture, SlicesAreDrawnRowByRow) {
  Mesh mesh({{"data", 2}, {"model", 2}, {"pipe", 2}});
  EXPECT_EQ(picture(mesh["model"]),
            "row 0 of 4\n"
            "  model →\n"
            "┌───┬───┐\n"
            "│ 0 │ 2 │\n"
            "└───┴───┘\n"
            "row 1 of 4\n"
            "  model →\n"
            "┌───┬───┐\n"
            "│ 1 │ 3 │\n"
            "└───┴───┘\n"
            "row 2 of 4\n"
            "  model →\n"
            "┌───┬───┐\n"
            "│ 4 │ 6 │\n"
            "└───┴───┘\n"
            "row 3 of 4\n"
            "  model →\n"
            "┌───┬───┐\n"
            "│ 5 │ 7 │\n"
            "└───┴───┘\n");
  std::string grids = picture(mesh.unsqueeze("one", 0).slice({"one", "pipe", "data"}));
  EXPECT_NE(grids.find("row 1 of 2, one = 0\n"), std::string::npos) << grids;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(MeshPictureSvg, EveryDeviceOrEveryGroupHasAColor) {
  Mesh mesh({{"data", 2}, {"model", 3}}, {10, 11, 12, 20, 21, 22});
  std::string svg = picture_svg(mesh);
  EXPECT_EQ(count_of(svg, "fill=\"hsl("), 6u);
  EXPECT_EQ(count_of(svg, "hsl(0,"), 1u);
  EXPECT_EQ(count_of(svg, ">21</text>"), 1u);
  EXPECT_EQ(count_of(svg, ">model →</text>"), 1u);
  std::string grouped = picture_svg(mesh, {"model"});
  EXPECT_EQ(count_of(grouped, "hsl(0,"), 3u);
  EXPECT_EQ(count_of(grouped, "hsl(137,"), 3u);
  EXPECT_EQ(count_of(picture_svg(mesh["model"], {"model"}), "hsl(137,"), 3u);
  EXPECT_TRUE(throws_error([&] { picture_svg(mesh, {"tp"}); }, ErrorCode::kNotFound, {"tp"}));
}

TEST(MeshPicture, TooMany) {
  EXPECT_TRUE(throws_error(
      [] {
        picture(Mesh({{"x", 5000}}));
      },
      ErrorCode::kInvalidArgument, {"5000", "4096"}));
  Mesh slice = Mesh({{"x", 5000}, {"y", 2}})["y"];
  EXPECT_TRUE(throws_error([&] { picture_svg(slice); }, ErrorCode::kInvalidArgument, {"10000"}));
}

}  // namespace
}  // namespace meshard
