#include "meshard/layout/int_tuple.h"

#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(IntTuple, IntegerAndTupleOfOneDiffer) {
  IntTuple integer(2), tuple{2};
  EXPECT_TRUE(integer.is_integer());
  EXPECT_FALSE(tuple.is_integer());
  EXPECT_FALSE(integer == tuple);
  EXPECT_EQ(integer.depth(), 0u);
  EXPECT_EQ(tuple.depth(), 1u);
  EXPECT_EQ(integer.rank(), 1u);
  EXPECT_EQ(integer[0], integer);
}

TEST(IntTuple, ElementsOfNestedTuple) {
  IntTuple t{IntTuple{2, IntTuple{3, 4}}, 5, IntTuple()};
  EXPECT_EQ(t.to_string(), "((2,(3,4)),5,())");
  EXPECT_EQ(t.rank(), 3u);
  EXPECT_EQ(t.depth(), 3u);
  EXPECT_EQ(t.leaves().size(), 4u);
  EXPECT_EQ(t[0].to_string(), "(2,(3,4))");
  EXPECT_EQ(t[0][1][1].value(), 4);
  EXPECT_EQ(t[1].value(), 5);
  EXPECT_EQ(t[2], IntTuple());
  EXPECT_EQ(t.product(), 120);
  EXPECT_TRUE(throws_error([&] { (void)t[3]; }, ErrorCode::kOutOfRange, {"element 3"}));
}

TEST(IntTuple, Congruence) {
  EXPECT_TRUE((IntTuple{2, IntTuple{3, 4}}).congruent({7, IntTuple{8, 9}}));
  EXPECT_FALSE((IntTuple{2, IntTuple{3, 4}}).congruent({7, 8, 9}));
}

TEST(IntTuple, ProductThatDoesNotFit) {
  IntTuple t{std::int64_t{1} << 40, std::int64_t{1} << 40};
  EXPECT_TRUE(throws_error([&] { t.product(); }, ErrorCode::kInvalidArgument, {"does not fit"}));
}

TEST(IntTuple, ParsesWhatItPrints) {
  for (const char* text : {"4", "-3", "()", "(4)", "(2,4)", "((2,2),(4,()),7)"}) {
    Result<IntTuple> parsed = IntTuple::parse(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(parsed->to_string(), text);
  }
  EXPECT_EQ(IntTuple::parse(" ( 2 , 4 ) ").value(), (IntTuple{2, 4}));
  for (const char* text : {"", "(2", "2)", "(2,)", "(a)", "99999999999999999999"})
    EXPECT_FALSE(IntTuple::parse(text).ok()) << text;
}

TEST(IntTuple, DepthOfTextsIsBounded) {
  auto nested = [](int depth) {
    std::string open(static_cast<std::size_t>(depth), '('), close(open.size(), ')');
    return IntTuple::parse(open + "1" + close);
  };
  EXPECT_EQ(nested(kMaxParsedDepth)->depth(), static_cast<std::size_t>(kMaxParsedDepth));
  EXPECT_TRUE(throws_error([&] { (void)nested(kMaxParsedDepth + 1).value(); },
                           ErrorCode::kInvalidArgument, {"more than 100 levels deep"}));
  EXPECT_FALSE(nested(100'000).ok());
}

TEST(IntTuple, Holes) {
  IntTuple coordinate{2, IntTuple{hole, 3}};
  EXPECT_TRUE(has_hole(coordinate));
  EXPECT_TRUE(has_hole(hole));
  EXPECT_FALSE(has_hole({2, IntTuple{0, 3}}));
  EXPECT_FALSE(has_hole(IntTuple()));
  EXPECT_EQ(coordinate.to_string(), "(2,(_,3))");
  EXPECT_EQ(IntTuple::parse("(2,( _ ,3))").value(), coordinate);
  EXPECT_FALSE(IntTuple::parse("_2").ok());
}

TEST(IntTuple, HashFollowsEquality) {
  EXPECT_EQ((IntTuple{2, 4}).hash(), IntTuple::flat({2, 4}).hash());
  EXPECT_NE((IntTuple{2, 4}).hash(), IntTuple::parse("((2,4))")->hash());
}

}  // namespace
}  // namespace meshard
