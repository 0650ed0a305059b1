#include "meshard/sharding/sharding_spec.h"

#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(ShardingSpec, FitsTensorsOfItsRankAndMore) {
  ShardingSpec spec(Mesh({{"x", 4}, {"y", 2}}), P("x", none));
  EXPECT_FALSE(spec.can_apply(1));
  EXPECT_TRUE(spec.can_apply(2));
  EXPECT_TRUE(spec.can_apply(3));
  EXPECT_EQ(spec.sharding(IntVector{8, 4, 3}), Sharding(spec.mesh(), P("x", none), 3));
  EXPECT_TRUE(throws_error([&] { spec.sharding(IntVector{8}); }, ErrorCode::kInvalidArgument,
                           {"has 2 dimensions, the tensor has 1"}));
  EXPECT_EQ(spec.to_string(), "ShardingSpec(mesh<x=4, y=2>, P(\"x\", none))");
}

TEST(ShardingSpec, RefusesWhatAShardingRefuses) {
  Mesh mesh({{"x", 4}, {"y", 2}});
  EXPECT_TRUE(
      throws_error([&] { ShardingSpec(mesh, P("z")); }, ErrorCode::kNotFound, {"mesh<x=4, y=2>"}));
  EXPECT_TRUE(throws_error([&] { ShardingSpec(mesh, P("x", "x")); }, ErrorCode::kInvalidArgument,
                           {"used twice"}));
}

// Position p of the mesh holds rows p, whatever device is there.
TEST(ShardingSpec, AMinibatchKeepsTheOrderOfItsRows) {
  Mesh mesh({{"x", 2}, {"y", 2}}, {3, 1, 2, 0});
  ShardingSpec spec = ShardingSpec::minibatch(mesh, P({"x", "y"}, none));
  EXPECT_TRUE(spec.is_minibatch());
  Sharding sharding = spec.sharding(IntVector{8, 5});
  for (std::int64_t p = 0; p < 4; ++p)
    EXPECT_EQ(sharding.slice(IntVector{8, 5}, p)[0], (Slice{2 * p, 2 * p + 2}));
}

TEST(ShardingSpec, AMinibatchIsSplitOverTheWholeMesh) {
  Mesh mesh({{"x", 4}, {"y", 2}});
  for (const PartitionSpec& spec : {P("x", "y"), P(none, {"x", "y"}), P()})
    EXPECT_TRUE(throws_error([&] { ShardingSpec::minibatch(mesh, spec); },
                             ErrorCode::kInvalidArgument,
                             {"a minibatch is split along dimension 0", "mesh<x=4, y=2>"}));
  ShardingSpec spec = ShardingSpec::minibatch(mesh, P({"x", "y"}));
  EXPECT_TRUE(throws_error(
      [&] {
        spec.sharding(IntVector{12, 3});
      },
      ErrorCode::kInvalidArgument, {"12 rows, shape (12,3)", "8 devices"}));
}

}  // namespace
}  // namespace meshard
