#include "meshard/array/box_overlap.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

TEST(BoxOverlap, IsTheCommonElements) {
  EXPECT_EQ(overlap({{0, 4}, {2, 6}}, {{2, 8}, {0, 3}}), (Box{{2, 4}, {2, 3}}));
  EXPECT_EQ(overlap({{0, 4}, {2, 6}}, {{1, 2}, {3, 5}}), (Box{{1, 2}, {3, 5}}));
  EXPECT_EQ(overlap({}, {}), Box());  // of one element without dimensions
}

TEST(BoxOverlap, IsNothingIfOneDimensionHasNone) {
  EXPECT_EQ(overlap({{0, 4}, {2, 6}}, {{0, 4}, {6, 8}}), std::nullopt);
  EXPECT_EQ(overlap({{0, 4}, {5, 6}}, {{4, 5}, {5, 6}}), std::nullopt);
  EXPECT_EQ(overlap({{2, 2}}, {{0, 4}}), std::nullopt);
}

TEST(RelativeTo, CountsFromTheStartOfTheOuterBox) {
  EXPECT_EQ(relative_to({{2, 8}, {3, 5}}, {{2, 4}, {4, 5}}), (Box{{0, 2}, {1, 2}}));
}

TEST(NumbersIn, AreThoseOfTheElementsInRowMajorOrder) {
  // Of [4, 5]: the rows 1 and 2 begin at 5 and 10.
  EXPECT_EQ(numbers_in({{1, 3}, {2, 4}}, std::vector<std::int64_t>{4, 5}),
            (std::vector<std::int64_t>{7, 8, 12, 13}));
  EXPECT_EQ(numbers_in({{2, 2}}, std::vector<std::int64_t>{4}), std::vector<std::int64_t>());
  EXPECT_EQ(numbers_in({}, {}), std::vector<std::int64_t>{0});
}

}  // namespace
}  // namespace meshard
