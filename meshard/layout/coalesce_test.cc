#include "meshard/layout/coalesce.h"

#include "meshard/layout/layout_testutil.h"

namespace meshard {
namespace {

// @post of coalesce
void check_coalesce(const Layout& layout) {
  Layout result = coalesce(layout);
  ASSERT_EQ(result.size(), layout.size()) << layout.to_string();
  for (std::int64_t i = 0; i < layout.size(); ++i)
    ASSERT_EQ(result(i), layout(i)) << layout.to_string() << " at " << i;
  EXPECT_LE(result.depth(), 1u);
  std::span<const std::int64_t> sizes = result.shape().leaves(), strides = result.stride().leaves();
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    EXPECT_GT(sizes[i], 1);
    EXPECT_NE(strides[i], sizes[i + 1] * strides[i + 1]) << result.to_string();
  }
}

TEST(Coalesce, Postconditions) {
  TestRandom random;
  for (int round = 0; round < 500; ++round) check_coalesce(random_layout(random));
}

TEST(Coalesce, Examples) {
  EXPECT_EQ(coalesce(Layout(IntTuple{2, IntTuple{1, 6}})).to_string(), "12:1");
  EXPECT_EQ(coalesce(Layout({2, 4}, {1, 2})).to_string(), "(2,4):(1,2)");
  EXPECT_EQ(coalesce(Layout({1, 1}, {5, 7})).to_string(), "1:0");
  EXPECT_EQ(coalesce(Layout({2, 3, 4}, {0, 0, 0})).to_string(), "24:0");
}

}  // namespace
}  // namespace meshard
