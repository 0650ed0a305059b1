#include "meshard/layout/orthogonal.h"

#include "meshard/layout/complement.h"
#include "meshard/layout/injective.h"
#include "meshard/layout/layout_testutil.h"

namespace meshard {
namespace {

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

}  // namespace
}  // namespace meshard
