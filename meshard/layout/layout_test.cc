#include "meshard/layout/layout.h"

#include <set>

#include "meshard/layout/int_tuple.h"
#include "meshard/layout/layout_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Layout, IsRowMajor) {
  Layout compact(IntTuple{2, 4});
  EXPECT_EQ(compact.to_string(), "(2,4):(4,1)");
  for (std::int64_t i = 0; i < 8; ++i) EXPECT_EQ(compact(i), i);
  Layout transposed({2, 4}, {1, 2});
  EXPECT_EQ(transposed(1), 2);  // (0, 1)
  EXPECT_EQ(transposed(4), 1);  // (1, 0)
  EXPECT_EQ(transposed(IntTuple{1, 3}), 7);
}

TEST(Layout, SizesAndRanks) {
  Layout nested({IntTuple{2, 2}, 3}, {IntTuple{24, 1}, 4});
  EXPECT_EQ(nested.size(), 12);
  EXPECT_EQ(nested.cosize(), 1 + 24 + 1 + 8);
  EXPECT_EQ(nested.rank(), 2u);
  EXPECT_EQ(nested.depth(), 2u);
  EXPECT_EQ(nested.mode(0).to_string(), "(2,2):(24,1)");
  EXPECT_EQ(nested(IntTuple{IntTuple{1, 1}, 2}), 33);
  EXPECT_EQ(nested(IntTuple{3, 2}), 33);  // 3 is (1, 1) in the first mode
  Layout scalar;
  EXPECT_EQ(scalar.size(), 1);
  EXPECT_EQ(scalar.cosize(), 1);
  EXPECT_EQ(scalar(0), 0);
}

TEST(Layout, IndicesBeyondTheSizeRunOnAlongTheFirstMode) {
  EXPECT_EQ(Layout({2, 4}, {100, 1})(9), 201);
}

// @post of operator(), over all indices of random layouts.
TEST(Layout, IndexAndCoordinateAgree) {
  TestRandom random;
  for (int round = 0; round < 300; ++round) {
    Layout layout = random_layout(random);
    std::int64_t largest = 0;
    for (std::int64_t i = 0; i < layout.size(); ++i) {
      EXPECT_EQ(layout(i), layout(coordinate_of(layout.shape(), i))) << layout.to_string();
      largest = std::max(largest, layout(i));
    }
    EXPECT_EQ(layout.cosize(), largest + 1) << layout.to_string();
  }
}

TEST(Layout, ParsesWhatItPrints) {
  TestRandom random;
  for (int round = 0; round < 100; ++round) {
    Layout layout = random_layout(random);
    EXPECT_EQ(Layout::parse(layout.to_string()).value(), layout) << layout.to_string();
  }
  EXPECT_EQ(Layout::parse("((2,2),4):((8,4),1)")->size(), 16);
  for (const char* text : {"(2,4)", "(2,4):(4)", "(2,4):4", "(0,4):(4,1)", "2:1 3"})
    EXPECT_FALSE(Layout::parse(text).ok()) << text;
}

TEST(Layout, HashFollowsEquality) {
  EXPECT_EQ(Layout(IntTuple{2, 4}).hash(), Layout({2, 4}, {4, 1}).hash());
  std::set<std::size_t> hashes;
  std::vector<Layout> layouts = {Layout(),         Layout(*IntTuple::parse("(())")),
                                 Layout(4, 4),     Layout(3, 3),
                                 Layout({4}, {4}), Layout(4, 1)};
  for (const Layout& layout : layouts) hashes.insert(layout.hash());
  EXPECT_EQ(hashes.size(), layouts.size());
}

TEST(Layout, OfModes) {
  EXPECT_EQ(Layout::of_modes({2, 4}, {4, 1}).to_string(), "(2,4):(4,1)");
  EXPECT_EQ(Layout::of_modes({4}, {3}).to_string(), "4:3");
  EXPECT_EQ(Layout::of_modes({}, {}).to_string(), "1:0");
}

TEST(Layout, Errors) {
  EXPECT_TRUE(throws_error(
      [] {
        Layout({2, 3}, {hole, 1});
      },
      ErrorCode::kInvalidArgument, {"hole", "(_,1)"}));
  EXPECT_FALSE(Layout::parse("(2,_):(3,1)").ok());
  EXPECT_TRUE(throws_error(
      [] {
        Layout({IntTuple(std::int64_t{1} << 40), std::int64_t{1} << 40}, {0, 0});
      },
      ErrorCode::kInvalidArgument, {"64 bits"}));
  EXPECT_TRUE(throws_error(
      [] {
        Layout({2, 4}, IntTuple(1));
      },
      ErrorCode::kInvalidArgument, {"(2,4)", "nesting"}));
  EXPECT_TRUE(throws_error(
      [] {
        Layout(IntTuple{2, 0});
      },
      ErrorCode::kInvalidArgument, {"below 1", "(2,0)"}));
  EXPECT_TRUE(throws_error([] { Layout(IntTuple(4), IntTuple(std::int64_t{1} << 62)); },
                           ErrorCode::kInvalidArgument, {"64 bits"}));
  EXPECT_TRUE(throws_error(
      [] {
        Layout(IntTuple{2, 4})(IntTuple{1, 1, 1});
      },
      ErrorCode::kInvalidArgument, {"(1,1,1)", "(2,4)"}));
}

}  // namespace
}  // namespace meshard
