#include "meshard/layout/slice.h"

#include "meshard/layout/coordinate.h"
#include "meshard/layout/layout_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

// A coordinate of `shape` with random holes; `holes` receives the shapes that they replace.
IntTuple random_coordinate(TestRandom& random, const IntTuple& shape,
                           std::vector<IntTuple>& holes) {
  if (random.between(0, 2) == 0) {
    holes.push_back(shape);
    return hole;
  }
  if (shape.is_integer() || random.between(0, 3) == 0)
    return random.between(0, shape.product() - 1);
  std::vector<IntTuple> elements;
  for (std::size_t i = 0; i < shape.rank(); ++i)
    elements.push_back(random_coordinate(random, shape[i], holes));
  return IntTuple(std::span<const IntTuple>(elements));
}

// `coordinate` with its holes replaced by the elements of `fill`, in order.
IntTuple filled(const IntTuple& coordinate, const IntTuple& fill, std::size_t& next) {
  if (coordinate.is_integer()) return coordinate.value() == hole ? fill[next++] : coordinate;
  std::vector<IntTuple> elements;
  for (std::size_t i = 0; i < coordinate.rank(); ++i)
    elements.push_back(filled(coordinate[i], fill, next));
  return IntTuple(std::span<const IntTuple>(elements));
}

// @post of slice_and_offset
TEST(LayoutSlice, Postconditions) {
  TestRandom random;
  for (int round = 0; round < 1000; ++round) {
    Layout layout = round % 2 == 0 ? random_layout(random) : random_signed_layout(random);
    std::vector<IntTuple> holes;
    IntTuple coordinate = random_coordinate(random, layout.shape(), holes);
    OffsetLayout part = slice_and_offset(layout, coordinate);
    EXPECT_EQ(part.layout, slice(layout, coordinate));
    EXPECT_EQ(part.layout.shape(), IntTuple(std::span<const IntTuple>(holes)));
    for (std::int64_t i = 0; i < part.layout.size(); ++i) {
      IntTuple fill = coordinate_of(part.layout.shape(), i);
      std::size_t next = 0;
      ASSERT_EQ(part.offset + part.layout(i), layout(filled(coordinate, fill, next)))
          << layout.to_string() << " at " << coordinate.to_string();
    }
  }
}

TEST(LayoutSlice, Examples) {
  Layout layout = Layout::parse("(3,(8,6)):(48,(6,1))").value();
  EXPECT_EQ(slice(layout, {1, hole}).to_string(), "((8,6)):((6,1))");
  EXPECT_EQ(slice(layout, {hole, IntTuple{2, hole}}).to_string(), "(3,6):(48,1)");
  EXPECT_EQ(slice(layout, hole).to_string(), "((3,(8,6))):((48,(6,1)))");
  EXPECT_EQ(slice(layout, {1, 10}), Layout());
  EXPECT_EQ(slice_and_offset(layout, {1, 10}).offset, 58);  // 10 is (1, 4): 48 + 6 + 4
  EXPECT_EQ(slice_and_offset(layout, {hole, IntTuple{2, hole}}).offset, 12);
  EXPECT_EQ(slice(IntTuple(6), 2), IntTuple());
  EXPECT_EQ(slice(IntTuple(6), hole), IntTuple{6});
  for (const IntTuple& misfit :
       {IntTuple{1}, IntTuple{hole, 1, 1}, IntTuple{IntTuple{hole}, 1}, IntTuple()})
    EXPECT_TRUE(throws_error([&] { slice_and_offset(layout, misfit); }, ErrorCode::kInvalidArgument,
                             {"[slice]", "does not fit"}));
}

}  // namespace
}  // namespace meshard
