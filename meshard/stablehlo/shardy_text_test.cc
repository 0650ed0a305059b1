#include "meshard/stablehlo/shardy_text.h"

#include "meshard/sharding/sharding_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(ShardyMeshText, WithoutDeviceIds) {
  EXPECT_EQ(shardy_text(Mesh({{"data", 2}, {"model", 4}})), "<[\"data\"=2, \"model\"=4]>");
  EXPECT_EQ(shardy_text(Mesh({{"x", 2}}, {7, 3})), "<[\"x\"=2]>");  // logical numbering
  EXPECT_EQ(shardy_text(Mesh()), "<[]>");
  EXPECT_EQ(shardy_text(Mesh({{"x", 2, AxisKind::kExplicit}, {"y", 4}})), "<[\"x\"=2, \"y\"=4]>");
}

TEST(ShardyMeshText, OfASliceIsItsBase) {
  Mesh stage = *Mesh({{"p", 2}, {"x", 4}, {"y", 2}}).submesh({"y", "x"}, 9);
  EXPECT_EQ(shardy_text(stage["x"]), "<[\"y\"=2, \"x\"=4]>");
}

TEST(ShardyMeshText, NumberedByAnotherMesh) {
  Mesh first({{"x", 4}}, {6, 2, 8, 4});
  EXPECT_EQ(shardy_text(first, first), "<[\"x\"=4]>");
  EXPECT_EQ(shardy_text(Mesh({{"a", 2}, {"b", 2}}, {2, 4, 6, 8}), first),
            "<[\"a\"=2, \"b\"=2], device_ids=[1, 3, 0, 2]>");
  EXPECT_TRUE(throws_error(
      [&] {
        shardy_text(Mesh({{"a", 4}}), first);
      },
      ErrorCode::kInvalidArgument, {"mesh<a=4>", "[6,2,8,4]"}));
}

TEST(ShardyMeshText, Parse) {
  EXPECT_EQ(parse_shardy_mesh("<[\"data\"=2, \"model\"=4]>").value(),
            Mesh({{"data", 2}, {"model", 4}}));
  EXPECT_EQ(parse_shardy_mesh("<[\"x\"=2], device_ids=[1, 0]>").value(), Mesh({{"x", 2}}, {1, 0}));
  EXPECT_EQ(parse_shardy_mesh("<[], device_ids=[3]>").value(), Mesh(std::vector<MeshAxis>{}, {3}));
  EXPECT_FALSE(parse_shardy_mesh("<[\"x\"=2], device_ids=[1]>").ok());
  EXPECT_FALSE(parse_shardy_mesh("[\"x\"=2]").ok());
}

TEST(ShardyShardingText, Examples) {
  Mesh mesh({{"data", 2}, {"x", 2}, {"y", 2}, {"z", 2}});
  Sharding s(mesh, P("data", none, {"x", "y"}, unconstrained));
  EXPECT_EQ(shardy_text(s), "#sdy.sharding<@mesh, [{\"data\"}, {}, {\"x\", \"y\"}, {?}]>");
  EXPECT_EQ(shardy_text(s.with_replicated({"z"}), "m1"),
            "#sdy.sharding<@m1, [{\"data\"}, {}, {\"x\", \"y\"}, {?}], replicated={\"z\"}>");
  EXPECT_EQ(shardy_text(Sharding(mesh, P({})).with_unreduced({"z"})),
            "#sdy.sharding<@mesh, [{}], unreduced={\"z\"}>");
  EXPECT_EQ(shardy_text(Sharding(mesh, P({})).with_unreduced({"z"}, UnreducedKind::kMin)),
            "#sdy.sharding<@mesh, [{}], unreduced=min{\"z\"}>");
  EXPECT_EQ(shardy_text(Sharding(Mesh({{"x", 8}}), P(DimensionSpec({AxisRef("x", 2, 2)}, true)))),
            "#sdy.sharding<@mesh, [{\"x\":(2)2, ?}]>");
}

TEST(ShardyShardingText, ParsesWhatItPrints) {
  TestRandom random;
  for (int round = 0; round < 200; ++round) {
    Mesh mesh = random_mesh(random);
    Sharding s = random_sharding(random, mesh, 3);
    s = round % 2 == 0
            ? s.with_replicated(s.unused_axes())
            : s.with_unreduced(s.unused_axes(), static_cast<UnreducedKind>(round / 2 % 3));
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
