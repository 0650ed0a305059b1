#include "meshard/mesh/axis_ref.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/matchers.h"

namespace meshard {
namespace {

struct Row {
  AxisRef a, b;
  bool contains, overlaps, prefix;
};

// The truth table from the header.
const Row kRows[] = {
    {"x", "x", true, true, true},
    {"x", "y", false, false, false},
    {"x", {"x", 2, 2}, true, true, false},
    {{"x", 2, 2}, "x", false, true, false},
    {{"x", 1, 2}, "x", false, true, true},
    {{"x", 1, 2}, {"x", 1, 4}, false, true, true},
    {{"x", 1, 4}, {"x", 1, 2}, true, true, false},
    {{"x", 1, 4}, {"x", 2, 2}, true, true, false},
    {{"x", 2, 2}, {"x", 1, 4}, false, true, false},
    {{"x", 1, 4}, {"x", 2, 4}, false, true, false},
    {{"x", 1, 2}, {"x", 2, 4}, false, false, false},
    {{"x", 2, 4}, {"x", 2, 4}, true, true, true},
    {{"x", 2, 2}, {"y", 2, 2}, false, false, false},
};

TEST(AxisRef, TruthTable) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.a.to_string() + " and " + row.b.to_string());
    EXPECT_EQ(row.a.contains(row.b), row.contains);
    EXPECT_EQ(row.a.overlaps(row.b), row.overlaps);
    EXPECT_EQ(row.a.is_prefix_of(row.b), row.prefix);
    // In reverse: overlap is symmetric; both contain each other only if they are equal.
    EXPECT_EQ(row.b.overlaps(row.a), row.overlaps);
    EXPECT_EQ(row.b.contains(row.a) && row.contains, row.a == row.b);
    EXPECT_EQ(row.b.is_prefix_of(row.a) && row.prefix, row.a == row.b);
  }
}

// The bits of the index that a sub-axis of an axis of size 8 represents, most significant first.
std::set<int> bits(const AxisRef& axis) {
  std::set<int> set;
  std::int64_t begin = axis.is_whole() ? 1 : axis.pre_size;
  std::int64_t end = axis.is_whole() ? 8 : axis.pre_size * axis.size;
  for (int bit = 0; bit < 3; ++bit)
    if (begin <= (1 << bit) && (1 << bit) < end) set.insert(bit);
  return set;
}

TEST(AxisRef, PredicatesAreThoseOfTheSetsOfBits) {
  std::vector<AxisRef> all = {"x"};
  for (std::int64_t pre : {1, 2, 4})
    for (std::int64_t size : {2, 4})
      if (pre * size <= 8) all.push_back({"x", pre, size});
  for (const AxisRef& a : all)
    for (const AxisRef& b : all) {
      std::set<int> one = bits(a), two = bits(b), both;
      for (int bit : one)
        if (two.contains(bit)) both.insert(bit);
      EXPECT_EQ(a.overlaps(b), !both.empty()) << a.to_string() << b.to_string();
      EXPECT_EQ(a.contains(b), both == two) << a.to_string() << b.to_string();
      EXPECT_EQ(a.is_prefix_of(b), both == one && *one.begin() == *two.begin())
          << a.to_string() << b.to_string();
    }
}

TEST(AxisRef, ParsesWhatItPrints) {
  for (const char* text : {"\"x\"", "\"data_1\":(2)4"})
    EXPECT_EQ(AxisRef::parse(text).value().to_string(), text);
  for (const char* text : {"x", "\"x", "\"x\":2", "\"x\":(0)2", "\"x\":(1)1", "\"x\":(2)2 y"})
    EXPECT_FALSE(AxisRef::parse(text).ok()) << text;
}

TEST(AxisRef, APositionIsAnAxisWithoutAName) {
  AxisRef first(0), second(std::size_t{1});
  EXPECT_TRUE(first.is_position() && first.is_whole());
  EXPECT_FALSE(AxisRef("x").is_position());
  EXPECT_EQ(first, AxisRef(0));
  EXPECT_EQ(first.hash(), AxisRef(0L).hash());
  EXPECT_NE(first, second);
  EXPECT_NE(first, AxisRef(""));
  EXPECT_FALSE(first.overlaps(second) || first.contains(second) || first.overlaps(AxisRef("")));
  EXPECT_TRUE(first.overlaps(AxisRef(0)) && first.contains(AxisRef(0)));
  EXPECT_EQ(second.to_string(), "1");
  EXPECT_EQ(AxisRef::parse("12").value(), AxisRef(12));
  EXPECT_FALSE(AxisRef::parse("-1").ok());
  EXPECT_FALSE(AxisRef::parse("0:(1)2").ok());
  EXPECT_TRUE(throws_error([] { (void)AxisRef(-1); }, ErrorCode::kInvalidArgument,
                           {"axis_ref_test.cc:", "axis position -1 is negative"}));
}

}  // namespace
}  // namespace meshard
