#include "meshard/mesh/grid_picture.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

TEST(GridPicture, WidthsAreCountedInCharacters) {
  EXPECT_EQ(grid_picture({{"ü", "22"}}, "ä", "b"),
            "      b →\n"
            "    ┌────┬────┐\n"
            "ä ↓ │ ü  │ 22 │\n"
            "    └────┴────┘\n");
}

TEST(GridPicture, WithoutLabels) {
  EXPECT_EQ(grid_picture({{"1"}, {"2"}}, "", ""),
            "┌───┐\n"
            "│ 1 │\n"
            "├───┤\n"
            "│ 2 │\n"
            "└───┘\n");
}

}  // namespace
}  // namespace meshard
