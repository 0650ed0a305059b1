#include "meshard/layout/right_inverse.h"

#include "meshard/layout/layout_testutil.h"

namespace meshard {
namespace {

// @post of right_inverse
void check_right_inverse(const Layout& layout) {
  Layout result = right_inverse(layout);
  for (std::int64_t i = 0; i < result.size(); ++i)
    ASSERT_EQ(layout(result(i)), i) << layout.to_string() << " -> " << result.to_string();
  EXPECT_LE(result.size(), layout.size());
}

TEST(RightInverse, Postconditions) {
  TestRandom random;
  for (int round = 0; round < 1000; ++round) {
    check_right_inverse(random_layout(random));
    check_right_inverse(random_signed_layout(random));
  }
  for (const Layout& layout : picked_layouts()) check_right_inverse(layout);
}

TEST(RightInverse, PermutationsAreInvertedWhole) {
  TestRandom random;
  for (int round = 0; round < 500; ++round) {
    Layout layout = random_permuted_layout(random);
    check_right_inverse(layout);
    EXPECT_EQ(right_inverse(layout).size(), layout.size()) << layout.to_string();
  }
}

TEST(RightInverse, Examples) {
  auto text = [](const char* layout) {
    return right_inverse(Layout::parse(layout).value()).to_string();
  };
  EXPECT_EQ(text("(8,4):(1,8)"), "(4,8):(1,4)");
  EXPECT_EQ(text("(2,4):(8,1)"), "4:1");  // a gap follows
  EXPECT_EQ(text("3:8"), "1:0");
  EXPECT_EQ(text("(2,4):(0,1)"), "1:0");
}

}  // namespace
}  // namespace meshard
