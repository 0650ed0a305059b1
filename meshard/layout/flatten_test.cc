#include "meshard/layout/flatten.h"

#include "meshard/layout/layout_testutil.h"

namespace meshard {
namespace {

// @post of flatten
void check_flatten(const Layout& layout) {
  Layout flat = flatten(layout);
  EXPECT_EQ(flat.depth(), 1u) << layout.to_string();
  EXPECT_EQ(values_of(flat), values_of(layout)) << layout.to_string();
}

TEST(Flatten, Postconditions) {
  TestRandom random;
  for (int round = 0; round < 300; ++round) check_flatten(random_signed_layout(random));
  for (const Layout& layout : picked_layouts()) check_flatten(layout);
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
