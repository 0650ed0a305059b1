#include "meshard/layout/coordinate.h"

#include "meshard/layout/layout_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Coordinate, LastModeIsFastest) {
  EXPECT_EQ(coordinate_of(IntTuple{2, 4}, 6), (IntTuple{1, 2}));
  EXPECT_EQ(coordinate_of(IntTuple{IntTuple{2, 2}, 3}, 7), (IntTuple{IntTuple{1, 0}, 1}));
  EXPECT_EQ(coordinate_of(IntTuple{2, 4}, 9), (IntTuple{2, 1}));  // continues along the first mode
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

// @post of coordinate_of with strides
TEST(Coordinate, OfTheValuesOfOrthogonalLayouts) {
  TestRandom random;
  for (int round = 0; round < 300; ++round) {
    Layout layout = random_permuted_layout(random);
    const IntTuple &shape = layout.shape(), &stride = layout.stride();
    for (std::int64_t i = 0; i < layout.size(); ++i) {
      std::int64_t value = layout(i);
      ASSERT_EQ(value_of(coordinate_of(shape, stride, value), shape, stride), value)
          << layout.to_string();
    }
  }
}

TEST(Coordinate, WithStrides) {
  EXPECT_EQ(coordinate_of({2, 3, 4}, {12, 4, 1}, 14), (IntTuple{1, 0, 2}));
  EXPECT_EQ(coordinate_of(5, 3, 3), IntTuple(1));
  EXPECT_EQ(coordinate_of({2, IntTuple{3, 4}}, {12, IntTuple{4, 1}}, {13, 7}),
            (IntTuple{1, IntTuple{1, 3}}));
  EXPECT_EQ(coordinate_of(4, 1, 9), IntTuple(1));  // modulo the size
  EXPECT_EQ(value_of({1, 10}, {3, IntTuple{8, 6}}, {48, IntTuple{6, 1}}), 58);
  EXPECT_EQ(value_of({hole, 10}, {3, IntTuple{8, 6}}, {48, IntTuple{6, 1}}), 10);
  EXPECT_EQ(value_of(hole, {3, 4}, {4, 1}), 0);
  for (std::int64_t stride : {0, -1})
    EXPECT_TRUE(throws_error([&] { coordinate_of(4, stride, 3); }, ErrorCode::kInvalidArgument,
                             {"stride", std::to_string(stride)}));
  EXPECT_TRUE(throws_error([] { coordinate_of(IntTuple{2}, IntTuple(1), 0); },
                           ErrorCode::kInvalidArgument, {"(2)", "nesting"}));
  EXPECT_TRUE(throws_error(
      [] {
        coordinate_of({2, 3}, {3, 1}, {1, 1, 1});
      },
      ErrorCode::kInvalidArgument, {"(1,1,1)", "does not fit"}));
  EXPECT_TRUE(throws_error(
      [] {
        value_of({1, 1}, 4, 1);
      },
      ErrorCode::kInvalidArgument, {"(1,1)", "does not fit"}));
}

TEST(Coordinate, Conversion) {
  EXPECT_EQ(convert_coordinate(8, {IntTuple{2, 5}, IntTuple{3}}),
            (IntTuple{IntTuple{0, 2}, IntTuple{2}}));
  EXPECT_EQ(convert_coordinate(3, 4), IntTuple(3));
  EXPECT_EQ(convert_coordinate({1, 2}, {2, 3}), (IntTuple{1, 2}));
  EXPECT_EQ(convert_coordinate({1, 5}, {2, IntTuple{2, 3}}), (IntTuple{1, IntTuple{1, 2}}));
  EXPECT_EQ(convert_coordinate({3, 0}, 10, IntTuple{5, 2}), IntTuple(6));
  auto refuses = [](const IntTuple& coordinate, const IntTuple& destination, ErrorCode code,
                    const char* why) {
    return throws_error([&] { convert_coordinate(coordinate, destination); }, code, {why});
  };
  EXPECT_TRUE(refuses(9, 4, ErrorCode::kOutOfRange, "not an index of shape 4"));
  EXPECT_TRUE(refuses(6, {2, 3}, ErrorCode::kOutOfRange, "not an index of shape (2,3)"));
  EXPECT_TRUE(refuses(-1, 4, ErrorCode::kOutOfRange, "-1"));
  EXPECT_TRUE(refuses({1, 2}, 12, ErrorCode::kInvalidArgument, "without the shape"));
  EXPECT_TRUE(refuses({1, 2}, {2, 3, 4}, ErrorCode::kInvalidArgument, "does not fit"));
}

}  // namespace
}  // namespace meshard
