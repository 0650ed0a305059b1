#include "meshard/sharding/op_sharding.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

TEST(OpSharding, ParsesWhatItPrints) {
  for (const char* text : {"{replicated}", "{maximal device=3}", "{devices=[2,2]<=[2,2]T(1,0)}",
                           "{devices=[2,2]3,2,1,0 last_tile_dim_replicate}", "{}", "{{replicated}}",
                           "{{replicated}, {devices=[2]0,1}, {devices=[2]<=[2]}}"})
    EXPECT_EQ(OpSharding::parse(text).value().to_string(), text);
  for (const char* text : {"", "{{}}", "{{replicated}", "{{replicated} {replicated}}", "{{{}}}",
                           "{replicated}, {replicated}"})
    EXPECT_FALSE(OpSharding::parse(text).ok()) << text;
}

TEST(OpSharding, ATupleIsAList) {
  OpSharding tuple = OpSharding::parse("{{replicated}, {devices=[2]0,1}}").value();
  EXPECT_TRUE(tuple.is_tuple());
  EXPECT_EQ(tuple.type(), ShardingType::kTuple);
  ASSERT_EQ(tuple.elements().size(), 2u);
  EXPECT_EQ(sharding_type(tuple.elements()[1]), ShardingType::kTiled);
  OpSharding array = OpSharding::parse("{devices=[2]0,1}").value();
  EXPECT_FALSE(array.is_tuple());
  EXPECT_EQ(array.type(), ShardingType::kTiled);
  EXPECT_NE(OpSharding(array.elements()), array);  // a tuple of one differs from an array
}

TEST(OpSharding, CanonicalFormsOfBothVersionsAreEqual) {
  OpSharding v2 =
      OpSharding::parse("{{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}}").value();
  OpSharding v1 = OpSharding::parse("{{devices=[2,1,2]2,0,1,3 last_tile_dim_replicate}}").value();
  EXPECT_NE(v1, v2);
  EXPECT_EQ(v1.canonical(), v2.canonical());
}

}  // namespace
}  // namespace meshard
