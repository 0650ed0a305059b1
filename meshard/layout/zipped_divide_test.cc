#include "meshard/layout/zipped_divide.h"

#include "meshard/layout/layout_testutil.h"
#include "meshard/layout/logical_divide.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

// The values of logical_divide, at ((i, j), (k, l)) of ((tile, rest), (tile, rest)).
TEST(ZippedDivide, GathersWhatLogicalDivideHas) {
  TestRandom random;
  int answered = 0;
  for (int round = 0; round < 1000; ++round) {
    Layout a(IntTuple{random.between(1, 12), random.between(1, 12), random.between(1, 3)});
    Tiler tiler{random.between(1, 6), Layout(IntTuple(random.between(1, 4)), random.between(1, 3))};
    Result<Layout> logical = logical_divide(a, tiler), zipped = zipped_divide(a, tiler);
    ASSERT_EQ(logical.ok(), zipped.ok());
    if (!logical) continue;
    ++answered;
    ASSERT_TRUE(is_gathered(random, *logical, *zipped)) << zipped->to_string();
  }
  EXPECT_GT(answered, 300);
}

TEST(ZippedDivide, Examples) {
  auto text = [](const char* a, const char* b) {
    return zipped_divide(Layout::parse(a).value(), Tiler::parse(b).value())->to_string();
  };
  EXPECT_EQ(text("(4,6):(6,1)", "<2, 3>"), "((2,3),(2,2)):((6,1),(12,3))");
  EXPECT_EQ(text("(4,6):(6,1)", "<_, 3>"), "((1,3),(4,2)):((0,1),(6,3))");
  EXPECT_EQ(text("(4,6):(6,1)", "<2>"), "((2),(2,6)):((6),(12,1))");
  EXPECT_EQ(text("24:1", "_"), "(1,24):(0,1)");
  EXPECT_EQ(text("24:1", "4"), "(4,6):(1,4)");
  EXPECT_TRUE(throws_error(
      [] {
        (void)zipped_divide(Layout(IntTuple{4, 6}), Tiler{2, 3, 4}).value();
      },
      ErrorCode::kInvalidArgument, {"[zipped_divide]", "3 elements", "2 modes"}));
}

}  // namespace
}  // namespace meshard
