#include <gtest/gtest.h>

#include "meshard/array/slice.h"

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

// Against the elements of the box, one by one.
TEST(ContiguousAt, SaysWhereTheElementsAreInARow) {
  const Shape shape{2, 3, 4};
  for (std::int64_t a = 0; a < 2; ++a)
    for (std::int64_t b = 0; b < 3; ++b)
      for (std::int64_t c = 0; c < 4; ++c)
        for (std::int64_t i = a + 1; i <= 2; ++i)
          for (std::int64_t j = b + 1; j <= 3; ++j)
            for (std::int64_t k = c + 1; k <= 4; ++k) {
              const std::int64_t first = (a * 3 + b) * 4 + c, last = ((i - 1) * 3 + j - 1) * 4 + k;
              const bool in_a_row = last - first == (i - a) * (j - b) * (k - c);
              EXPECT_EQ(contiguous_at({{a, i}, {b, j}, {c, k}}, shape),
                        in_a_row ? std::optional(first) : std::nullopt);
            }
  EXPECT_EQ(contiguous_at({}, Shape{}), 0);
}

}  // namespace
}  // namespace meshard
