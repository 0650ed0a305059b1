#include "meshard/sharding/partition_spec.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

TEST(PartitionSpec, TheWaysToWriteIt) {
  EXPECT_EQ(P("data", none, {"x", "y"}, open).to_string(),
            "P(\"data\", none, {\"x\", \"y\"}, open)");
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
  EXPECT_NE(P(none), P(open));
  EXPECT_EQ(P("x", open).hash(), P("x", open).hash());
  EXPECT_NE(P("x", none).hash(), P("x", open).hash());
}

TEST(PartitionSpec, ParsesWhatItPrints) {
  for (const char* text : {"P()", "P(none)", "P(\"data\", none, {\"x\", \"y\"}, open)",
                           "P({\"x\":(1)2, \"y\"}, {\"z\", open})"})
    EXPECT_EQ(PartitionSpec::parse(text).value().to_string(), text);
  for (const char* text : {"", "P(", "P(x)", "P({open, \"x\"})", "P(none,)", "P(none) none"})
    EXPECT_FALSE(PartitionSpec::parse(text).ok()) << text;
}

}  // namespace
}  // namespace meshard
