#include "meshard/layout/injective.h"

#include <set>

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

}  // namespace
}  // namespace meshard
