#include "meshard/layout/split.h"

#include "meshard/layout/layout_testutil.h"

namespace meshard {
namespace {

// Random factors of a size.
std::vector<std::int64_t> random_sizes(TestRandom& random, std::int64_t size) {
  std::vector<std::int64_t> sizes;
  while (size > 1) {
    std::int64_t factor = random.between(1, size);
    while (size % factor != 0) --factor;
    sizes.push_back(factor);
    size /= factor;
  }
  return sizes;
}

// @post of split
TEST(Split, Postconditions) {
  TestRandom random;
  int done = 0;
  for (int round = 0; round < 2000; ++round) {
    Layout layout = random_layout(random);
    std::vector<std::int64_t> sizes = random_sizes(random, layout.size());
    Result<Layout> result = split(layout, sizes);
    if (!result) continue;
    ++done;
    ASSERT_EQ(result->shape().rank(), sizes.size());
    for (std::size_t k = 0; k < sizes.size(); ++k) EXPECT_EQ(result->mode(k).size(), sizes[k]);
    for (std::int64_t i = 0; i < layout.size(); ++i)
      ASSERT_EQ((*result)(i), layout(i)) << layout.to_string() << " -> " << result->to_string();
  }
  EXPECT_GT(done, 200);
}

TEST(Split, Examples) {
  EXPECT_EQ(split(Layout({2, 4}, {1, 2}), {2, 2, 2})->to_string(), "((2),(2),(2)):((1),(4),(2))");
  EXPECT_EQ(split(Layout({4, 6}, {1, 4}), {8, 3})->to_string(), "((4,2),(3)):((1,12),(4))");
  EXPECT_EQ(split(Layout(IntTuple(8)), {1, 8})->to_string(), "((),(8)):((),(1))");
}

TEST(Split, Refusals) {
  // (4,9) is not 6 x 6: the mode of 9, which varies fastest, would have 1.5 pieces of 6.
  EXPECT_FALSE(split(Layout({4, 9}, {1, 4}), {6, 6}).ok());
  EXPECT_FALSE(split(Layout(IntTuple(8)), {2, 2}).ok());
  EXPECT_FALSE(split(Layout(IntTuple(8)), {0, 8}).ok());
  EXPECT_FALSE(split(Layout(IntTuple(8)), {std::int64_t{1} << 62, 8}).ok());
}

}  // namespace
}  // namespace meshard
