#include "meshard/layout/modes.h"

#include <algorithm>

#include "meshard/layout/int_tuple.h"
#include "meshard/layout/layout_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Concatenate, Postconditions) {
  TestRandom random;
  for (int round = 0; round < 200; ++round) {
    Layout a = random_layout(random), b = random_layout(random);
    Layout both = concatenate({a, b});
    ASSERT_EQ(both.rank(), 2u);
    EXPECT_EQ(both.mode(0), a);
    EXPECT_EQ(both.mode(1), b);
    EXPECT_EQ(concatenate(a, b), both);
    for (std::int64_t i = 0; i < a.size(); i += random.between(1, 7))
      for (std::int64_t j = 0; j < b.size(); j += random.between(1, 7))
        ASSERT_EQ(both(IntTuple{i, j}), a(i) + b(j)) << both.to_string();
  }
}

TEST(Concatenate, Examples) {
  EXPECT_EQ(concatenate({}), Layout());
  EXPECT_EQ(concatenate({Layout(IntTuple(2), IntTuple(6))}).to_string(), "(2):(6)");
  EXPECT_EQ(concatenate({Layout({4}, {4}), Layout(IntTuple(2))}).to_string(), "((4),2):((4),1)");
}

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

// @post of permute
TEST(Permute, Postconditions) {
  TestRandom random;
  for (int round = 0; round < 300; ++round) {
    Layout layout = random_layout(random);
    if (layout.shape().is_integer()) continue;
    std::vector<std::int64_t> order;
    for (std::size_t k = 0; k < layout.rank(); ++k) order.push_back(static_cast<std::int64_t>(k));
    std::shuffle(order.begin(), order.end(), random);
    Layout result = permute(layout, order);
    ASSERT_EQ(result.rank(), layout.rank());
    for (int probe = 0; probe < 20; ++probe) {
      std::vector<IntTuple> from, to;
      for (std::size_t k = 0; k < layout.rank(); ++k)
        from.push_back(random.between(0, layout.mode(k).size() - 1));
      for (std::int64_t k : order) to.push_back(from[static_cast<std::size_t>(k)]);
      ASSERT_EQ(result(IntTuple(std::span<const IntTuple>(to))),
                layout(IntTuple(std::span<const IntTuple>(from))))
          << layout.to_string() << " -> " << result.to_string();
    }
  }
}

TEST(Permute, Examples) {
  Layout layout = Layout::parse("(2,(3,4),5):(60,(20,5),1)").value();
  EXPECT_EQ(permute(layout, {2, 0, 1}).to_string(), "(5,2,(3,4)):(1,60,(20,5))");
  EXPECT_EQ(permute(layout, {0, 1, 2}), layout);
  EXPECT_EQ(permute(Layout(), {}), Layout());
  for (const IntVector& order :
       {IntVector{0, 1}, IntVector{0, 1, 1}, IntVector{1, 2, 3}, IntVector{-1, 0, 1}})
    EXPECT_TRUE(throws_error([&] { permute(layout, order); }, ErrorCode::kInvalidArgument,
                             {"[permute]", "3 modes", layout.to_string()}));
}

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
