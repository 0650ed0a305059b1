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

TEST(MeshPicture, TooMany) {
  EXPECT_TRUE(throws_error(
      [] {
        picture(Mesh({{"x", 5000}}));
      },
      ErrorCode::kInvalidArgument, {"5000", "4096"}));
}

}  // namespace
}  // namespace meshard
