#include "meshard/sharding/partition_spec.h"

#include <gtest/gtest.h>

#include <type_traits>

#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(PartitionSpec, TheWaysToWriteIt) {
  EXPECT_EQ(P("data", none, {"x", "y"}, unconstrained).to_string(),
            "P(\"data\", none, {\"x\", \"y\"}, unconstrained)");
  EXPECT_EQ(P({"x", "y"}), P(axes("x", "y")));
  EXPECT_EQ(P({"x", "y"}).size(), 1u);
  EXPECT_EQ(P({"x", "y"}, none).size(), 2u);
  EXPECT_EQ(P({"x"}), P("x"));
  EXPECT_EQ(P({}), P(none));
  EXPECT_EQ(P({{"x", 1, 2}, "y"})[0].axes()[0], AxisRef("x", 1, 2));
  EXPECT_EQ(P(AxisRef("x", 2, 2)).to_string(), "P(\"x\":(2)2)");
  std::string name = "x";
  EXPECT_EQ(P(name, std::string_view("y")), P("x", "y"));
  EXPECT_EQ(P().size(), 0u);
  EXPECT_EQ(P("a", "b", "c", "d", "e", "f", "g", "h").size(), 8u);
}

TEST(PartitionSpec, EqualityIsByElement) {
  EXPECT_NE(P("x"), P("x", none));
  EXPECT_NE(P({"x", "y"}), P({"y", "x"}));
  EXPECT_NE(P(none), P(unconstrained));
  EXPECT_EQ(P("x", unconstrained).hash(), P("x", unconstrained).hash());
  EXPECT_NE(P("x", none).hash(), P("x", unconstrained).hash());
}

TEST(PartitionSpec, ParsesWhatItPrints) {
  for (const char* text : {"P()", "P(none)", "P(\"data\", none, {\"x\", \"y\"}, unconstrained)",
                           "P({\"x\":(1)2, \"y\"}, {\"z\", unconstrained})"})
    EXPECT_EQ(PartitionSpec::parse(text).value().to_string(), text);
  for (const char* text :
       {"", "P(", "P(x)", "P({unconstrained, \"x\"})", "P(none,)", "P(none) none"})
    EXPECT_FALSE(PartitionSpec::parse(text).ok()) << text;
}

TEST(PartitionSpec, AxesMayBeGivenByPosition) {
  EXPECT_EQ(P(0, none).to_string(), "P(0, none)");
  EXPECT_EQ(P(none, 1).to_string(), "P(none, 1)");
  EXPECT_EQ(P({0, 1}, "x", unconstrained).to_string(), "P({0, 1}, \"x\", unconstrained)");
  EXPECT_EQ(P({0, "y"}), P(axes(0, "y")));
  EXPECT_EQ(P({0}), P(0));
  EXPECT_EQ(P(0, none), P(0u, none));
  EXPECT_EQ(P(0, none).hash(), P(0, none).hash());
  EXPECT_NE(P(0, none), P(1, none));
  EXPECT_NE(P(0), P(""));
  EXPECT_NE(P(0), P("x"));
  for (const char* text : {"P(0, none)", "P(none, 10)", "P({1, \"x\"}, {0, unconstrained})"})
    EXPECT_EQ(PartitionSpec::parse(text).value().to_string(), text);
  EXPECT_FALSE(PartitionSpec::parse("P(-1)").ok());
  static_assert(!std::is_constructible_v<DimensionSpec, std::nullptr_t>);
  static_assert(!std::is_constructible_v<DimensionSpec, bool>);
  for (auto negative : {+[] { return P(-1, none); }, +[] { return P(none, {0, -2}); }})
    EXPECT_TRUE(throws_error([&] { (void)negative(); }, ErrorCode::kInvalidArgument,
                             {"partition_spec_test.cc:", "is negative"}));
}

}  // namespace
}  // namespace meshard
