#include "meshard/sharding/shardy_text.h"

#include <gtest/gtest.h>

#include "meshard/sharding/sharding_testutil.h"

namespace meshard {
namespace {

TEST(ShardyShardingText, Examples) {
  Mesh mesh({{"data", 2}, {"x", 2}, {"y", 2}, {"z", 2}});
  Sharding s(mesh, P("data", none, {"x", "y"}, unconstrained));
  EXPECT_EQ(shardy_text(s), "#sdy.sharding<@mesh, [{\"data\"}, {}, {\"x\", \"y\"}, {?}]>");
  EXPECT_EQ(shardy_text(s.with_replicated({"z"}), "m1"),
            "#sdy.sharding<@m1, [{\"data\"}, {}, {\"x\", \"y\"}, {?}], replicated={\"z\"}>");
  EXPECT_EQ(shardy_text(Sharding(mesh, P({})).with_unreduced({"z"})),
            "#sdy.sharding<@mesh, [{}], unreduced={\"z\"}>");
  EXPECT_EQ(shardy_text(Sharding(Mesh({{"x", 8}}), P(DimensionSpec({AxisRef("x", 2, 2)}, true)))),
            "#sdy.sharding<@mesh, [{\"x\":(2)2, ?}]>");
}

TEST(ShardyShardingText, ParsesWhatItPrints) {
  TestRandom random;
  for (int round = 0; round < 200; ++round) {
    Mesh mesh = random_mesh(random);
    Sharding s = random_sharding(random, mesh, 3);
    s = round % 2 == 0 ? s.with_replicated(s.unused_axes()) : s.with_unreduced(s.unused_axes());
    EXPECT_EQ(parse_shardy_sharding(shardy_text(s), mesh).value(), s) << shardy_text(s);
  }
}

TEST(ShardyShardingText, OtherForms) {
  Mesh mesh({{"x", 2}});
  Sharding s(mesh, P("x"));
  EXPECT_EQ(parse_shardy_sharding("<@any_name, [{\"x\"}]>", mesh).value(), s);
  EXPECT_EQ(parse_shardy_sharding("#sdy.sharding<mesh<[\"x\"=2]>, [{\"x\"}]>", mesh).value(), s);
  for (const char* text :
       {"#sdy.sharding<mesh<[\"x\"=4]>, [{\"x\"}]>", "<@mesh, [{\"y\"}]>", "<@mesh, [{?, \"x\"}]>",
        "<@mesh, [{\"x\"}p1]>", "<@mesh, [{\"x\"}], other={\"x\"}>", "<@mesh>", "[{\"x\"}]"})
    EXPECT_FALSE(parse_shardy_sharding(text, mesh).ok()) << text;
}

}  // namespace
}  // namespace meshard
