#include "meshard/layout/disjoint.h"

#include <set>

#include "meshard/layout/layout_testutil.h"

namespace meshard {
namespace {

TEST(Disjoint, AgreesWithTheListsOfValues) {
  TestRandom random;
  int disjoint = 0;
  for (int round = 0; round < 4000; ++round) {
    auto draw = [&] {
      // Few values far apart; otherwise nearly every pair overlaps.
      IntVector sizes, strides;
      for (std::int64_t i = random.between(0, 3); i > 0; --i) {
        sizes.push_back(random.between(1, 5));
        strides.push_back(random.between(-6, 12) * random.between(1, 4));
      }
      return Layout(IntTuple::flat(sizes), IntTuple::flat(strides));
    };
    Layout a = round % 2 == 0 ? draw() : random_signed_layout(random);
    Layout b = draw();
    std::int64_t offset = random.between(-20, 20);
    std::vector<std::int64_t> values = values_of(a);
    std::set<std::int64_t> seen(values.begin(), values.end());
    bool expected = true;
    for (std::int64_t value : values_of(b)) expected &= seen.count(value + offset) == 0;
    ASSERT_EQ(are_disjoint(a, b, offset), expected)
        << a.to_string() << " and " << b.to_string() << " + " << offset;
    ASSERT_EQ(are_disjoint(b, a, -offset), expected);
    disjoint += expected;
  }
  EXPECT_GT(disjoint, 500);
  EXPECT_LT(disjoint, 3500);
}

TEST(Disjoint, Examples) {
  Layout evens(IntTuple(8), IntTuple(2));
  EXPECT_FALSE(are_disjoint(evens, evens));
  EXPECT_TRUE(are_disjoint(evens, evens, 1));
  EXPECT_TRUE(are_disjoint(evens, evens, 16));
  EXPECT_FALSE(are_disjoint(evens, evens, -14));
  EXPECT_TRUE(are_disjoint(Layout(), Layout(), 1));
  EXPECT_FALSE(are_disjoint(Layout(), Layout()));
}

// The columns and rows of a square of 2^62 elements.
TEST(Disjoint, LargeLayouts) {
  std::int64_t large = std::int64_t{1} << 31;
  Layout row({large}, {1}), column({large}, {large});
  EXPECT_TRUE(are_disjoint(row, row, large));
  EXPECT_FALSE(are_disjoint(row, row, large - 1));
  EXPECT_FALSE(are_disjoint(row, column, -5 * large));
  EXPECT_TRUE(are_disjoint(column, column, 5 * large + 1));
}

}  // namespace
}  // namespace meshard
