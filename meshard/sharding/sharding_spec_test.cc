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
                           {"has 2 dimensions, but the tensor has 1"}));
  EXPECT_EQ(spec.to_string(), "ShardingSpec(mesh<x=4, y=2>, P(\"x\", none))");
}

TEST(ShardingSpec, RefusesWhatAShardingRefuses) {
  Mesh mesh({{"x", 4}, {"y", 2}});
  EXPECT_TRUE(
      throws_error([&] { ShardingSpec(mesh, P("z")); }, ErrorCode::kNotFound, {"mesh<x=4, y=2>"}));
  EXPECT_TRUE(throws_error([&] { ShardingSpec(mesh, P("x", "x")); }, ErrorCode::kInvalidArgument,
                           {"used twice"}));
}

// Position p of the mesh holds the p-th block of rows, whichever device is there.
TEST(ShardingSpec, AMinibatchKeepsTheOrderOfItsRows) {
  Mesh mesh({{"x", 2}, {"y", 2}}, {3, 1, 2, 0});
  ShardingSpec spec = ShardingSpec::minibatch(mesh, P({"x", "y"}, none));
  EXPECT_TRUE(spec.is_minibatch());
  Sharding sharding = spec.sharding(IntVector{8, 5});
  for (std::int64_t p = 0; p < 4; ++p)
    EXPECT_EQ(sharding.slice(IntVector{8, 5}, p)[0], (DimensionSlice{2 * p, 2 * p + 2}));
}

TEST(ShardingSpec, AMinibatchIsSplitOverTheWholeMesh) {
  Mesh mesh({{"x", 4}, {"y", 2}});
  for (const PartitionSpec& spec : {P("x", "y"), P(none, {"x", "y"}), P()})
    EXPECT_TRUE(throws_error([&] { ShardingSpec::minibatch(mesh, spec); },
                             ErrorCode::kInvalidArgument,
                             {"a minibatch must be split along dimension 0", "mesh<x=4, y=2>"}));
  ShardingSpec spec = ShardingSpec::minibatch(mesh, P({"x", "y"}));
  EXPECT_TRUE(throws_error(
      [&] {
        spec.sharding(IntVector{12, 3});
      },
      ErrorCode::kInvalidArgument, {"12 rows, shape (12,3)", "8 devices"}));
}

struct Shaped {  // the part of a tensor that can_apply needs
  IntVector sizes;
  const IntVector& shape() const { return sizes; }
};

TEST(ShardingSpec, CanApplyLooksAtRankAndSizes) {
  Mesh mesh({{"x", 4}, {"y", 2}});
  ShardingSpec spec(mesh, P("x", none)), batch = ShardingSpec::minibatch(mesh, P({"x", "y"}));
  ShardingSpec even(mesh.with_uneven(Uneven::kError), P("x", none));
  struct {
    const ShardingSpec& spec;
    IntVector dims;
    bool fits;
  } cases[] = {{spec, {8, 4}, true}, {spec, {8}, false},    {spec, {7, 4, 2}, true},
               {batch, {16}, true},  {batch, {12}, false},  {batch, {}, false},
               {even, {8, 4}, true}, {even, {7, 4}, false}, {even, {0, 4}, true}};
  for (const auto& c : cases) {
    SCOPED_TRACE(cat(c.spec, " for ", join(c.dims, ",")));
    EXPECT_EQ(c.spec.can_apply(Shaped{c.dims}), c.fits);
    EXPECT_EQ(c.spec.find_sharding(c.dims).has_value(), c.fits);
    if (c.fits) {
      EXPECT_EQ(c.spec.find_sharding(c.dims), c.spec.sharding(c.dims));
    } else {
      EXPECT_THROW(c.spec.sharding(c.dims), Error);
    }
  }
}

TEST(ShardingSpec, ParsesWhatItPrints) {
  Mesh mesh({{"x", 4}, {"y", 2}}, {7, 6, 5, 4, 3, 2, 1, 0});
  for (const ShardingSpec& spec : {ShardingSpec(mesh, P("x", none)), ShardingSpec(mesh, P()),
                                   ShardingSpec::minibatch(mesh, P({"x", "y"}, unconstrained)),
                                   ShardingSpec(mesh.with_uneven(Uneven::kError), P(none, "y"))})
    EXPECT_EQ(ShardingSpec::parse(spec.to_string()).value(), spec) << spec.to_string();
  for (const char* text : {"ShardingSpec(mesh<x=2>, P(\"y\"))", "ShardingSpec(mesh<x=2>)",
                           "ShardingSpec(mesh<x=2>, "
                           "P(\"x\"), mini)",
                           "ShardingSpec(mesh<x=2, y=2>, P(\"x\"), minibatch)", ""})
    EXPECT_FALSE(ShardingSpec::parse(text).ok()) << text;
}

}  // namespace
}  // namespace meshard
