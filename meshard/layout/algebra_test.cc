#include "meshard/layout/algebra.h"

#include <set>

#include "meshard/layout/layout_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

// @post of coalesce
void check_coalesce(const Layout& layout) {
  Layout result = coalesce(layout);
  ASSERT_EQ(result.size(), layout.size()) << layout.to_string();
  for (std::int64_t i = 0; i < layout.size(); ++i)
    ASSERT_EQ(result(i), layout(i)) << layout.to_string() << " at " << i;
  EXPECT_LE(result.depth(), 1u);
  std::span<const std::int64_t> sizes = result.shape().leaves(), strides = result.stride().leaves();
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    EXPECT_GT(sizes[i], 1);
    EXPECT_NE(strides[i], sizes[i + 1] * strides[i + 1]) << result.to_string();
  }
}

TEST(Coalesce, Postconditions) {
  TestRandom random;
  for (int round = 0; round < 500; ++round) {
    check_coalesce(random_layout(random));
    check_coalesce(random_signed_layout(random));
    check_coalesce(random_permuted_layout(random));
  }
  for (const Layout& layout : picked_layouts()) check_coalesce(layout);
}

TEST(Coalesce, Examples) {
  EXPECT_EQ(coalesce(Layout(IntTuple{2, IntTuple{1, 6}})).to_string(), "12:1");
  EXPECT_EQ(coalesce(Layout({2, 4}, {1, 2})).to_string(), "(2,4):(1,2)");
  EXPECT_EQ(coalesce(Layout({1, 1}, {5, 7})).to_string(), "1:0");
  EXPECT_EQ(coalesce(Layout({2, 3, 4}, {0, 0, 0})).to_string(), "24:0");
}

// @post of coalesce with a profile
TEST(Coalesce, ByProfile) {
  TestRandom random;
  for (int round = 0; round < 500; ++round) {
    Layout layout = random_layout(random);
    std::vector<IntTuple> ones(
        static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(layout.rank()))),
        IntTuple(1));
    Layout result = coalesce(layout, IntTuple(std::span<const IntTuple>(ones))).value();
    EXPECT_EQ(values_of(result), values_of(layout)) << layout.to_string();
    ASSERT_EQ(result.rank(), layout.rank());
    for (std::size_t k = 0; k < layout.rank(); ++k)
      EXPECT_EQ(result.mode(k), k < ones.size() ? coalesce(layout.mode(k)) : layout.mode(k));
  }
  Layout nested({IntTuple{2, 3}, IntTuple{IntTuple{2, 2}, 5}},
                {IntTuple{3, 1}, IntTuple{IntTuple{2, 1}, 7}});
  EXPECT_EQ(coalesce(nested, 0).value(), coalesce(nested));
  EXPECT_EQ(coalesce(nested, IntTuple{7})->to_string(), "(6,((2,2),5)):(1,((2,1),7))");
  EXPECT_EQ(coalesce(nested, IntTuple{IntTuple(), IntTuple{1}})->to_string(),
            "((2,3),(4,5)):((3,1),(1,7))");
  EXPECT_TRUE(throws_error(
      [&] {
        (void)coalesce(nested, IntTuple{1, 1, 1}).value();
      },
      ErrorCode::kInvalidArgument, {"(1,1,1)", "3 elements", "2 modes"}));
}

// A stride whose reach does not fit 64 bits merges with nothing.
TEST(Coalesce, ReachBeyond64Bits) {
  std::int64_t large = std::int64_t{1} << 62;
  EXPECT_EQ(coalesce(Layout({2, 2}, {0, large})).to_string(), cat("(2,2):(0,", large, ")"));
}

// @post of filter
void check_filter(const Layout& layout) {
  Layout result = filter(layout);
  std::vector<std::int64_t> before = values_of(layout), after = values_of(result);
  EXPECT_EQ(std::set<std::int64_t>(after.begin(), after.end()),
            std::set<std::int64_t>(before.begin(), before.end()))
      << layout.to_string() << " -> " << result.to_string();
  if (result.size() > 1) {
    for (std::int64_t stride : result.stride().leaves()) EXPECT_NE(stride, 0);
  }
}

TEST(Filter, Postconditions) {
  TestRandom random;
  for (int round = 0; round < 500; ++round) check_filter(random_signed_layout(random));
  for (const Layout& layout : picked_layouts()) check_filter(layout);
}

TEST(Filter, Examples) {
  auto text = [](const char* layout) { return filter(Layout::parse(layout).value()).to_string(); };
  EXPECT_EQ(text("2:0"), "1:0");
  EXPECT_EQ(text("(2,3,4):(4,0,1)"), "8:1");
  EXPECT_EQ(text("((1,4),2):((7,3),0)"), "4:3");
  Layout two = Layout::parse("((2,3),(3,2)):((0,1),(2,0))").value();
  EXPECT_EQ(filter(two, IntTuple{1, 1})->to_string(), "(3,3):(1,2)");
  EXPECT_EQ(filter(two, IntTuple{1})->to_string(), "(3,(3,2)):(1,(2,0))");
  EXPECT_EQ(filter(two, IntTuple{IntTuple{1}, 1})->to_string(), "((1,3),3):((0,1),2)");
  EXPECT_EQ(filter(two, 5).value(), filter(two));
  EXPECT_TRUE(throws_error(
      [&] {
        (void)filter(two, IntTuple{1, 1, 1}).value();
      },
      ErrorCode::kInvalidArgument, {"[filter]", "3 elements", "2 modes"}));
}

TEST(SameFunction, AgreesWithTheLists) {
  TestRandom random;
  int same = 0;
  for (int round = 0; round < 20000; ++round) {
    // Few shapes and strides, so that equal functions occur.
    auto draw = [&] {
      IntVector sizes, strides;
      for (std::int64_t i = random.between(0, 3); i > 0; --i) {
        sizes.push_back(random.between(1, 2) * random.between(1, 2));
        strides.push_back(random.between(-1, 2) * random.between(1, 2));
      }
      return Layout(IntTuple::flat(sizes), IntTuple::flat(strides));
    };
    Layout a = draw(), b = draw();
    bool expected = values_of(a) == values_of(b);
    ASSERT_EQ(same_function(a, b), expected) << a.to_string() << " and " << b.to_string();
    same += expected;
  }
  EXPECT_GT(same, 500);
}

TEST(SameFunction, Examples) {
  EXPECT_TRUE(same_function(Layout(IntTuple{2, IntTuple{1, 6}}), Layout(IntTuple(12))));
  EXPECT_TRUE(same_function(Layout({1, 1}, {5, 7}), Layout()));
  EXPECT_FALSE(same_function(Layout(IntTuple(4)), Layout(IntTuple(5))));
  EXPECT_FALSE(same_function(Layout({2, 4}, {4, 1}), Layout({2, 4}, {1, 2})));
}

}  // namespace
}  // namespace meshard
