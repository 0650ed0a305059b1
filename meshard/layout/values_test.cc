#include "meshard/layout/values.h"

#include <limits>
#include <set>

#include "meshard/layout/algebra.h"
#include "meshard/layout/layout_testutil.h"

namespace meshard {
namespace {

// Returns whether no value occurs twice, and expects is_injective to agree.
bool check_injective(const Layout& layout) {
  std::vector<std::int64_t> values = values_of(layout);
  bool expected = std::set<std::int64_t>(values.begin(), values.end()).size() == values.size();
  EXPECT_EQ(is_injective(layout), expected) << layout.to_string();
  return expected;
}

TEST(Injective, AgreesWithTheListOfValues) {
  TestRandom random;
  for (const Layout& layout : picked_layouts()) check_injective(layout);
  int injective = 0;
  for (int round = 0; round < 3000; ++round) {
    Layout layout = round % 4 == 0   ? random_permuted_layout(random)
                    : round % 4 == 1 ? random_signed_layout(random)
                                     : random_layout(random);
    injective += check_injective(layout);
  }
  EXPECT_GT(injective, 500);
  EXPECT_LT(injective, 2800);
}

TEST(Injective, FewModesWithWideStrides) {
  TestRandom random;
  for (int round = 0; round < 3000; ++round) {
    IntVector sizes, strides;
    for (std::int64_t i = random.between(1, 4); i > 0; --i) {
      sizes.push_back(random.between(1, 6));
      strides.push_back(random.between(-60, 60));
    }
    Layout layout(IntTuple::flat(sizes), IntTuple::flat(strides));
    check_injective(layout);
  }
}

TEST(Injective, Examples) {
  EXPECT_TRUE(is_injective(Layout({3, 2}, {2, 3})));  // values 0 3 2 5 4 7
  EXPECT_TRUE(is_injective(Layout({2, 2}, {5, 2})));
  EXPECT_FALSE(is_injective(Layout({4, 3}, {2, 3})));  // 6 occurs twice
  EXPECT_TRUE(is_injective(Layout({2, 2}, {-1, 2})));
  EXPECT_FALSE(is_injective(Layout({2, 2}, {-1, 1})));
  EXPECT_TRUE(is_injective(Layout({1, 1}, {0, 0})));
  EXPECT_FALSE(is_injective(Layout(IntTuple(2), IntTuple(0))));
  EXPECT_TRUE(is_injective(Layout()));
}

// Layouts with too many values to list.
TEST(Injective, LargeLayouts) {
  std::int64_t large = std::int64_t{1} << 31;
  EXPECT_TRUE(is_injective(Layout(IntTuple{large, large})));
  EXPECT_TRUE(is_injective(Layout({large, large}, {large + 1, 1})));
  EXPECT_FALSE(is_injective(Layout({large, large}, {large - 1, 1})));
  EXPECT_TRUE(is_injective(Layout({large, large}, {large, large + 1})));
  EXPECT_FALSE(is_injective(Layout({large, large}, {large - 1, large - 2})));
}

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

// @post of is_orthogonal
TEST(Orthogonal, ImpliesInjectiveAndAComplementThatFills) {
  TestRandom random;
  int orthogonal = 0;
  for (int round = 0; round < 2000; ++round) {
    Layout layout = round % 2 == 0 ? random_layout(random) : random_permuted_layout(random);
    if (!is_orthogonal(layout) || (layout.size() > 1 && layout.cosize() == 1)) continue;
    ++orthogonal;
    EXPECT_TRUE(is_injective(layout)) << layout.to_string();
    std::int64_t count = random.between(1, 40);
    Layout rest = complement(layout, count).value();
    std::vector<bool> seen(static_cast<std::size_t>(rest.cosize() + layout.cosize()));
    for (std::int64_t offset : values_of(rest))
      for (std::int64_t value : values_of(layout))
        seen[static_cast<std::size_t>(offset + value)] = true;
    for (std::int64_t i = 0; i < count; ++i)
      EXPECT_TRUE(seen[static_cast<std::size_t>(i)]) << layout.to_string() << " misses " << i;
  }
  EXPECT_GT(orthogonal, 500);
}

TEST(Orthogonal, Examples) {
  EXPECT_TRUE(is_orthogonal(Layout(IntTuple{2, 3, 4})));
  EXPECT_TRUE(is_orthogonal(Layout({2, 4}, {1, 2})));
  EXPECT_TRUE(is_orthogonal(Layout({2, 4}, {100, 5})));
  EXPECT_FALSE(is_orthogonal(Layout({3, 2}, {2, 3})));  // but injective
  EXPECT_FALSE(is_orthogonal(Layout({2, 2}, {5, 2})));
  EXPECT_FALSE(is_orthogonal(Layout({2, 2}, {1, 1})));
  EXPECT_TRUE(is_orthogonal(Layout({2, 4}, {-4, 1})));
  EXPECT_FALSE(is_orthogonal(Layout({2, 3}, {1, 0})));
  EXPECT_FALSE(is_orthogonal(Layout({2, 3}, {0, 1})));
  EXPECT_TRUE(is_orthogonal(Layout({2, 3}, {0, 0})));  // one mode, 6:0
  EXPECT_TRUE(is_orthogonal(Layout({1, 1}, {0, 7})));
  EXPECT_TRUE(is_orthogonal(Layout()));
}

TEST(FromValues, FindsEveryLayoutFromItsValues) {
  TestRandom random;
  std::vector<Layout> layouts = picked_layouts();
  for (int round = 0; round < 300; ++round) {
    layouts.push_back(random_signed_layout(random));
    layouts.push_back(random_permuted_layout(random));
  }
  for (const Layout& layout : layouts) {
    std::int64_t offset = random.between(-5, 5);
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < layout.size(); ++i) values.push_back(offset + layout(i));
    std::optional<Layout> found = from_values(values);
    ASSERT_TRUE(found) << layout.to_string();
    EXPECT_EQ(*found, coalesce(layout)) << layout.to_string();
  }
}

TEST(FromValues, RefusesWhatIsNoLayout) {
  EXPECT_FALSE(from_values({0, 1, 2, 4}));
  EXPECT_FALSE(from_values({0, 1, 4, 6}));  // would pass for (2,2):(4,1) without verification
  EXPECT_FALSE(from_values({0, 1, 2, 3, 10, 11, 13, 12}));
  EXPECT_FALSE(from_values({0, 1, 3}));
  EXPECT_FALSE(from_values({0, 1, 4, 5, 9, 8}));
  EXPECT_FALSE(from_values({0, 2, 1, 4, 3, 5}));
  EXPECT_EQ(from_values({7})->size(), 1);
}

// The differences and their multiples do not all fit 64 bits (checked under UBSan).
TEST(FromValues, HandlesValuesAtTheEndsOfTheRange) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  EXPECT_FALSE(from_values({1, 8'000'000'000'000'000'001, 0, 1105000, 46976}));
  EXPECT_FALSE(from_values({kLeast, kMost}));
  EXPECT_FALSE(from_values({kMost, kLeast, 0}));
  EXPECT_FALSE(from_values({0, kMost, kLeast}));
  // (2,2):(s,s') whose last value would be s + s'.
  EXPECT_FALSE(from_values({0, kMost, kMost - 1, 5}));
  EXPECT_FALSE(from_values({0, kMost}));   // its cosize does not fit
  EXPECT_FALSE(from_values({0, kLeast}));  // that stride stands for a hole
  EXPECT_EQ(from_values({0, kMost - 1})->to_string(), "2:9223372036854775806");
  EXPECT_EQ(from_values({kMost, 0})->to_string(), "2:-9223372036854775807");
}

}  // namespace
}  // namespace meshard
