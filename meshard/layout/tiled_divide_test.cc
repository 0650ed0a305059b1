#include "meshard/layout/tiled_divide.h"

#include "meshard/layout/layout_testutil.h"
#include "meshard/layout/zipped_divide.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

// @post of tiled_divide
TEST(TiledDivide, IsTheFunctionOfZippedDivide) {
  TestRandom random;
  int answered = 0;
  for (int round = 0; round < 500; ++round) {
    Layout a(IntTuple{random.between(1, 12), random.between(1, 12), random.between(1, 3)});
    Tiler tiler{random.between(1, 6), Layout(IntTuple(random.between(1, 4)), random.between(1, 3))};
    Result<Layout> zipped = zipped_divide(a, tiler), tiled = tiled_divide(a, tiler);
    ASSERT_EQ(tiled.ok(), zipped.ok());
    if (!tiled) continue;
    ++answered;
    EXPECT_EQ(tiled->rank(), 4u);
    EXPECT_EQ(values_of(*tiled), values_of(*zipped));
  }
  EXPECT_GT(answered, 150);
}

TEST(TiledDivide, Examples) {
  auto text = [](const char* a, const char* b) {
    return tiled_divide(Layout::parse(a).value(), Tiler::parse(b).value())->to_string();
  };
  EXPECT_EQ(text("(4,6):(6,1)", "<2, 3>"), "((2,3),2,2):((6,1),12,3)");
  EXPECT_EQ(text("(4,6):(6,1)", "6:2"), "(6,2,2):(2,12,1)");
  EXPECT_EQ(text("24:1", "_"), "(1,24):(0,1)");
  EXPECT_TRUE(throws_error(
      [] {
        (void)tiled_divide(Layout(IntTuple{3, 4}), Tiler{2, 2, 2}).value();
      },
      ErrorCode::kInvalidArgument, {"3 elements", "2 modes"}));
}

}  // namespace
}  // namespace meshard
