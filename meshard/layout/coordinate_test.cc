#include "meshard/layout/coordinate.h"

#include "meshard/layout/layout_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Coordinate, LastModeIsFastest) {
  EXPECT_EQ(coordinate_of(IntTuple{2, 4}, 6), (IntTuple{1, 2}));
  EXPECT_EQ(coordinate_of(IntTuple{IntTuple{2, 2}, 3}, 7), (IntTuple{IntTuple{1, 0}, 1}));
  EXPECT_EQ(coordinate_of(IntTuple{2, 4}, 9), (IntTuple{2, 1}));  // runs on along the first mode
  EXPECT_EQ(coordinate_of(IntTuple(), 0), IntTuple());
  EXPECT_EQ(index_of(IntTuple{2, 4}, IntTuple{1, 2}), 6);
  EXPECT_EQ(index_of(IntTuple{IntTuple{2, 2}, 3}, IntTuple{2, 1}), 7);
}

// @post of coordinate_of
TEST(Coordinate, IndexOfCoordinateIsTheIndex) {
  TestRandom random;
  for (int round = 0; round < 200; ++round) {
    IntTuple shape = random_layout(random).shape();
    for (std::int64_t i = 0; i < shape.product(); ++i) {
      IntTuple coordinate = coordinate_of(shape, i);
      EXPECT_TRUE(coordinate.congruent(shape));
      EXPECT_EQ(index_of(shape, coordinate), i) << shape.to_string();
    }
  }
}

TEST(Coordinate, ThatDoesNotFit) {
  EXPECT_TRUE(throws_error(
      [] {
        index_of(IntTuple{2, 4}, IntTuple{1});
      },
      ErrorCode::kInvalidArgument, {"(1)", "(2,4)"}));
}

}  // namespace
}  // namespace meshard
