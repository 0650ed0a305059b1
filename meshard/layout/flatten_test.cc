#include "meshard/layout/flatten.h"

#include "meshard/layout/layout_testutil.h"

namespace meshard {
namespace {

TEST(Flatten, Postconditions) {
  TestRandom random;
  for (int round = 0; round < 300; ++round) {
    Layout layout = random_layout(random), flat = flatten(layout);
    EXPECT_EQ(flat.depth(), 1u) << layout.to_string();
    ASSERT_EQ(flat.size(), layout.size());
    for (std::int64_t i = 0; i < layout.size(); ++i)
      ASSERT_EQ(flat(i), layout(i)) << layout.to_string() << " at " << i;
  }
}

TEST(Flatten, Examples) {
  EXPECT_EQ(flatten(IntTuple{IntTuple{2, 3}, IntTuple(), 4}).to_string(), "(2,3,4)");
  EXPECT_EQ(flatten(IntTuple(4)).to_string(), "(4)");
  EXPECT_EQ(flatten(IntTuple()).to_string(), "()");
  EXPECT_EQ(flatten(Layout({IntTuple{2, 1}, 3}, {IntTuple{24, 9}, 4})).to_string(),
            "(2,1,3):(24,9,4)");
}

}  // namespace
}  // namespace meshard
